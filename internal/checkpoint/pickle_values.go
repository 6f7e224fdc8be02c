package checkpoint

import "strings"

// What a pickle describes. Texts, int64, float64, bool and nil stand for themselves.
type (
	pyTuple []any
	pyList  struct{ items []any }
	// pyDict keeps the order of insertion; a key that is set twice stays where it was.
	pyDict struct {
		keys, values []any
		index        map[any]int
	}
	// pyGlobal is a class or function by name.
	pyGlobal struct{ module, name string }
	// pyObject is what a call would have made.
	pyObject struct {
		class pyGlobal
		args  any
		dict  *pyDict // entries set on it, as on a subclass of dict
		state any
	}
	// pyStorage is the bytes of a tensor by the name of their entry in the zip. elements are of dtype.
	pyStorage struct {
		dtype, key string
		elements   int64
	}
	// pyTensor is a view of a storage; storage is nil for a tensor without one.
	pyTensor struct {
		storage       *pyStorage
		dtype         string
		offset        int64 // in elements
		shape, stride []int64
	}
	// opaque is what does not matter here: bytes, sets, large integers.
	opaque struct{}
)

func (g pyGlobal) String() string { return g.module + "." + g.name }

func (d *pyDict) set(key, value any) {
	switch key.(type) {
	case string, int64: // the others can't be map keys, or do not matter
		if d.index == nil {
			d.index = map[any]int{}
		}
		if i, again := d.index[key]; again {
			d.values[i] = value
			return
		}
		d.index[key] = len(d.keys)
	}
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

func (d *pyDict) get(key string) (any, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// dictOf is the dict that a value is or, for an object, holds.
func dictOf(v any) *pyDict {
	switch v := v.(type) {
	case *pyDict:
		return v
	case *pyObject:
		if v.dict == nil {
			v.dict = &pyDict{}
		}
		return v.dict
	}
	return nil
}

// call takes a global, or what calls one.
func (u *unpickler) call(op byte) error {
	switch op {
	case 'c', 'i':
		module, err := u.line()
		if err != nil {
			return err
		}
		name, err := u.line()
		if err != nil {
			return err
		}
		global := u.global(module, name)
		if op == 'c' {
			return u.push(global)
		}
		args, err := u.popMark()
		if err != nil {
			return err
		}
		return u.push(reduce(global, pyTuple(args)))
	case 0x82, 0x83, 0x84: // EXT1, EXT2, EXT4: a registry of the reader's own process
		if err := u.skip(int64(1) << (op - 0x82)); err != nil {
			return err
		}
		return u.push(opaque{})
	case 'P':
		_, err := u.line()
		if err != nil {
			return err
		}
		return u.push(opaque{})
	case 'o':
		items, err := u.popMark()
		if err != nil || len(items) == 0 {
			return errNotThere
		}
		return u.push(reduce(items[0], pyTuple(items[1:])))
	}
	operands := 2
	switch op {
	case 'Q':
		operands = 1
	case 0x92: // NEWOBJ_EX
		operands = 3
	}
	items := make([]any, operands)
	var err error
	for i := operands - 1; i >= 0 && err == nil; i-- {
		items[i], err = u.pop()
	}
	if err != nil {
		return err
	}
	switch op {
	case 'Q':
		return u.push(storageOf(items[0]))
	case 0x93: // STACK_GLOBAL
		module, _ := items[0].(string)
		name, _ := items[1].(string)
		return u.push(u.global(module, name))
	}
	return u.push(reduce(items[0], items[1]))
}

// maxImports bounds the names kept of what loading would import.
const maxImports = 1000

func (u *unpickler) global(module, name string) pyGlobal {
	g := pyGlobal{module, name}
	if !u.seen[g] && len(u.imports) < maxImports {
		u.seen[g] = true
		u.imports = append(u.imports, g)
	}
	return g
}

// storageOf reads a persistent id of torch.save: ('storage', class, key, device, number of elements).
func storageOf(v any) any {
	id, ok := v.(pyTuple)
	if !ok || len(id) < 5 || id[0] != "storage" {
		return opaque{}
	}
	class, _ := id[1].(pyGlobal)
	key, _ := id[2].(string)
	elements, ok := id[4].(int64)
	if !ok || elements < 0 || key == "" {
		return opaque{}
	}
	return &pyStorage{dtype: storageDtype(class.name), key: key, elements: elements}
}

// storageDtype is the element type of a storage class (torch/storage.py): an untyped one counts bytes.
func storageDtype(class string) string {
	switch class {
	case "FloatStorage":
		return "float32"
	case "DoubleStorage":
		return "float64"
	case "HalfStorage":
		return "float16"
	case "BFloat16Storage":
		return "bfloat16"
	case "LongStorage":
		return "int64"
	case "IntStorage":
		return "int32"
	case "ShortStorage":
		return "int16"
	case "CharStorage":
		return "int8"
	case "ByteStorage", "UntypedStorage":
		return "uint8"
	case "BoolStorage":
		return "bool"
	case "ComplexFloatStorage":
		return "complex64"
	case "ComplexDoubleStorage":
		return "complex128"
	case "QInt8Storage":
		return "qint8"
	case "QUInt8Storage":
		return "quint8"
	case "QInt32Storage":
		return "qint32"
	}
	return strings.ToLower(strings.TrimSuffix(class, "Storage"))
}

// reduce is what calling function with args would give, as far as it matters: the functions of torch/_utils.py that make
// tensors, and dicts. Anything else is an object that only has its name.
func reduce(function, args any) any {
	given, _ := args.(pyTuple)
	g, ok := function.(pyGlobal)
	if !ok {
		return opaque{}
	}
	switch {
	case g.module == "collections" && g.name == "OrderedDict":
		return orderedDict(given)
	case g.module == "torch" && g.name == "Size" && len(given) == 1:
		return given[0]
	case g.module == "torch._utils":
		if made := rebuild(g.name, given); made != nil {
			return made
		}
	case g.module == "torch._tensor" && g.name == "_rebuild_from_type_v2" && len(given) >= 3:
		return reduce(given[0], given[2])
	}
	return &pyObject{class: g, args: args}
}

func orderedDict(args pyTuple) *pyDict {
	dict := &pyDict{}
	if len(args) != 1 {
		return dict
	}
	if pairs, ok := args[0].(*pyList); ok {
		for _, pair := range pairs.items {
			switch p := pair.(type) {
			case pyTuple:
				if len(p) == 2 {
					dict.set(p[0], p[1])
				}
			case *pyList:
				if len(p.items) == 2 {
					dict.set(p.items[0], p.items[1])
				}
			}
		}
	}
	return dict
}

// rebuild makes a tensor; nil where the function makes none, or its arguments do not fit.
func rebuild(name string, args pyTuple) any {
	switch name {
	case "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor":
		if len(args) < 4 {
			return nil
		}
		storage, ok := args[0].(*pyStorage)
		offset, isInt := args[1].(int64)
		shape, sized := sizes(args[2])
		stride, strided := sizes(args[3])
		if !ok || !isInt || !sized || !strided || len(shape) != len(stride) {
			return nil
		}
		tensor := &pyTensor{storage: storage, dtype: storage.dtype, offset: offset, shape: shape, stride: stride}
		if name == "_rebuild_tensor_v3" && len(args) > 6 {
			if dtype, ok := args[6].(pyGlobal); ok { // torch.float8_e4m3fn over an untyped storage
				tensor.dtype = dtype.name
			}
		}
		return tensor
	case "_rebuild_parameter", "_rebuild_parameter_with_state":
		if len(args) > 0 {
			if tensor, ok := args[0].(*pyTensor); ok {
				return tensor
			}
		}
	case "_rebuild_meta_tensor_no_storage":
		if len(args) < 2 {
			return nil
		}
		dtype, _ := args[0].(pyGlobal)
		if shape, ok := sizes(args[1]); ok {
			return &pyTensor{dtype: dtype.name, shape: shape}
		}
	}
	return nil
}

// sizes reads a shape or a stride.
func sizes(v any) ([]int64, bool) {
	tuple, ok := v.(pyTuple)
	if !ok {
		return nil, false
	}
	list := make([]int64, len(tuple))
	for i, n := range tuple {
		if list[i], ok = n.(int64); !ok || list[i] < 0 {
			return nil, false
		}
	}
	return list, true
}
