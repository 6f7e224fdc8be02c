// Package baseline says what a trivial model scores on the very split on which a trained one is judged: the majority
// class, the mean and the median, persistence and seasonal climatology where there is a time, the nearest neighbour, and
// ridge regression. A model that does not beat them has not learned what its numbers suggest.
//
// Every statistic (means, deviations, class shares, levels of a category) comes from the train part alone. Files are
// streamed three times and nothing is random: where cost is bounded, every k-th row is taken and the score's Why says so.
package baseline
