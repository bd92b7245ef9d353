package web

import (
	"fmt"
	"html/template"
	"io"
	"math/rand/v2"
	"reflect"
	"time"
)

// mixtures is how many half-filled pages each template is tried with, beside the empty and the full one. They reach
// what stands in an {{else}} below a condition.
const mixtures = 24

// tryComponents tries the shared templates, whether a page uses them yet or not.
func tryComponents(common *template.Template) error {
	for name, of := range map[string]any{
		"time": Time{}, "money": Money{}, "state": State{}, "facts": []Fact{}, "empty": Empty{}, "tile": Tile{}, "timeline": []Moment{},
		"compare": Compare{}, "plot": Plot{}, "field": Field{}, "filter": Filter{}, "pager": Pager{}, "action": Action{},
	} {
		t, err := common.Clone()
		if err != nil {
			return err
		}
		if err := try(t.Lookup(name), of); err != nil {
			return fmt.Errorf("component %q: %w", name, err)
		}
	}
	return nil
}

// try executes a template on an empty page of its type, a full one, and mixtures of both. The choices are the same in
// every run: a template is right or wrong, never sometimes.
func try(t *template.Template, page any) error {
	choose := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // made-up pages are no secret
	for i := range mixtures + 2 {
		example := reflect.New(reflect.TypeOf(page)).Elem()
		switch i {
		case 0:
		case 1:
			fill(example, func() bool { return true })
		default:
			fill(example, func() bool { return choose.IntN(2) == 0 })
		}
		if err := t.Execute(io.Discard, example.Interface()); err != nil {
			return fmt.Errorf("tried on a made-up page: %w", err)
		}
	}
	return nil
}

// fill gives a value to every exported field for which wanted says yes.
func fill(v reflect.Value, wanted func() bool) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 3, 2, 10, 0, 0, 123456000, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && (wanted() || field.Type.Kind() == reflect.Struct) {
				fill(v.Field(i), wanted)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), wanted)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), wanted)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, wanted)
		fill(value, wanted)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), wanted)
	case reflect.String:
		v.SetString("1")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	}
}
