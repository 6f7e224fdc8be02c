package checkpoint

import (
	"strings"
)

// Tensor is one entry of a checkpoint. Name is its path through the file's dicts, joined by dots; Dtype is PyTorch's name
// of the element type in every format; Part says which of Info.Holds it belongs to.
type Tensor struct {
	Name  string  `json:"name"`
	Dtype string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Part  string  `json:"part,omitempty"`
}

// dtypeBits are the sizes of the element types, in bits.
var dtypeBits = map[string]int64{
	"bool": 8, "uint8": 8, "int8": 8, "float8_e5m2": 8, "float8_e4m3fn": 8, "float8_e8m0fnu": 8, "qint8": 8, "quint8": 8,
	"int16": 16, "uint16": 16, "float16": 16, "bfloat16": 16, "int32": 32, "uint32": 32, "float32": 32, "qint32": 32,
	"int64": 64, "uint64": 64, "float64": 64, "complex64": 64, "complex128": 128,
}

// safetensorsDtypes are the names of element types in a safetensors header.
var safetensorsDtypes = map[string]string{
	"BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
	"I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32",
	"F64": "float64", "I64": "int64", "U64": "uint64", "C64": "complex64",
}

// besideModel are the parts whose tensors are no parameters of the model.
var besideModel = map[string]bool{"optimizer": true, "scheduler": true, "scaler": true, "rng": true, "ema": true, "step": true, "epoch": true}

// elementsOf multiplies a shape; false for a negative length or a product beyond 2^62.
func elementsOf(shape []int64) (int64, bool) {
	elements := int64(1)
	for _, n := range shape {
		if n < 0 || n > 0 && elements > (1<<62)/n {
			return 0, false
		}
		elements *= n
	}
	return elements, true
}

// addTensor counts a tensor and keeps it while there is room. tied says that its bytes were counted already.
func (c *contents) addTensor(t Tensor, elements, bytes int64, tied bool) {
	if c.tensorCount++; len(c.tensors) < c.keep {
		t.Name = strings.ToValidUTF8(t.Name, "\uFFFD")
		if len(t.Name) > maxTensorName {
			t.Name = t.Name[:maxTensorName]
		}
		c.tensors = append(c.tensors, t)
	}
	if tied {
		return
	}
	c.tensorBytes += bytes
	if !besideModel[t.Part] {
		c.parameters += elements
	}
}

// maxTensorName bounds the bytes of a name that is kept.
const maxTensorName = 500

// rngNames are the words in which scripts name random states beyond those of partNames.
var rngNames = []string{"rng_state", "random_state", "rng"}

// partOfKey is the one name for the part under a top-level key, and whether a known one.
func partOfKey(key string) (string, bool) {
	lower := strings.ToLower(key)
	if known, ok := partNames[lower]; ok {
		return known, true
	}
	for _, word := range rngNames {
		if strings.HasSuffix(lower, "_"+word) || strings.HasPrefix(lower, word+"_") {
			return "rng", true
		}
	}
	return key, false
}
