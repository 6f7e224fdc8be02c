package finding

import "errors"

// Of parts an error: the findings of a refusal, or the error itself where it is none. Both are nil for no error.
func Of(err error) ([]Finding, error) {
	var refused *Refused
	if errors.As(err, &refused) {
		return refused.Findings, nil
	}
	return nil, err
}
