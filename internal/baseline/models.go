package baseline

import (
	"context"
	"fmt"
	"strconv"
)

// fitModels reads the train rows once more for the nearest neighbour and ridge regression.
func (w *work) fitModels(ctx context.Context) error {
	width := w.encoder.width
	if width == 0 {
		w.leftOut(NearestNeighbour+" and "+Ridge, "no feature is a number or a category of at most "+strconv.Itoa(maxLevels)+" levels")
		return nil
	}
	if width > maxCells/fewestNeighbours {
		w.leftOut(NearestNeighbour+" and "+Ridge, fmt.Sprintf("%d columns are too many", width))
		return nil
	}
	outputs := 1
	if !w.numeric() {
		outputs = len(w.labels)
	}
	take := sampleOf(w.rows, (w.testRows+w.testStep-1)/w.testStep, width)
	nearStep := stride(w.rows, take)
	w.near = &neighbours{width: width}
	switch {
	case width > maxRidgeWidth:
		w.leftOut(Ridge, fmt.Sprintf("%d columns are more than %d", width, maxRidgeWidth))
	case outputs > maxClasses:
		w.leftOut(Ridge, fmt.Sprintf("%d classes are more than %d", outputs, maxClasses))
	default:
		w.linear = newRidge(width, outputs)
		w.linearStep = stride(w.rows, ridgeCost/((width+1)*(width+1)))
	}
	row, x, y := 0, make([]float64, width), make([]float64, outputs)
	err := w.train.each(ctx, func(_ int, fields [][]byte) error {
		text, value, ok := w.target(fields, w.inTrain.target)
		if !ok {
			return nil
		}
		number := row
		row++
		near, linear := number%nearStep == 0, w.linear != nil && number%w.linearStep == 0
		if !near && !linear {
			return nil
		}
		w.encoder.row(fields, inTrain, x)
		if near {
			w.near.rows = append(w.near.rows, x...)
			w.near.index = append(w.near.index, number)
			w.nearTarget = append(w.nearTarget, w.asPrediction(text, value))
		}
		if linear {
			w.outputs(y, text, value)
			w.linear.add(x, y)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if w.linear != nil && !w.linear.solve() {
		w.leftOut(Ridge, "its equations are singular")
		w.linear = nil
	}
	return nil
}

func (w *work) asPrediction(text string, value float64) any {
	if w.numeric() {
		return value
	}
	return label(text)
}

// outputs writes what least squares fits: the target, or 1 for the row's class and 0 for the others.
func (w *work) outputs(y []float64, text string, value float64) {
	if w.numeric() {
		y[0] = value
		return
	}
	class := label(text)
	for i, name := range w.labels {
		y[i] = 0
		if name == class {
			y[i] = 1
		}
	}
}

// predict goes through the test rows.
func (w *work) predict(ctx context.Context) error {
	w.ids = map[string]string{}
	x := make([]float64, w.encoder.width)
	out := make([]float64, max(len(w.labels), 1))
	row := 0
	return w.test.each(ctx, func(_ int, fields [][]byte) error {
		text, _, ok := w.target(fields, w.inTest.target)
		if !ok {
			return nil
		}
		number := row
		if row++; number%w.testStep != 0 {
			return nil
		}
		if number&0xff == 0 {
			if err := ctx.Err(); err != nil { // distances take their time
				return err
			}
		}
		w.ids[strconv.Itoa(number)] = text
		w.order = append(w.order, number)
		if w.near == nil {
			return nil
		}
		w.encoder.row(fields, inTest, x)
		w.nearest = append(w.nearest, w.nearTarget[w.near.nearest(x)])
		if w.linear != nil {
			w.linear.predict(x, out)
			w.regressed = append(w.regressed, w.read(out))
		}
		return nil
	})
}

// read is the prediction that outputs mean: the number, or the class of the largest, the more frequent of equals.
func (w *work) read(out []float64) any {
	if w.numeric() {
		return out[0]
	}
	best := 0
	for i, v := range out {
		if v > out[best] {
			best = i
		}
	}
	return w.labels[best]
}
