package bench

import (
	"cmp"
	"slices"
)

// Figure is one ratio of a run.
type Figure struct {
	Name string `json:"name"`
	// Ratio is the median of the rounds' ratios, Min and Max are the least and the greatest of them.
	Ratio float64 `json:"ratio"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// Goal is what Ratio should be at least; 0: there is none, the figure is for information.
	Goal float64 `json:"goal"`

	// This and Other are the two things measured, what the ratio is of and to.
	This, Other Series `json:"-"`
}

// Met says whether the goal is reached.
func (f Figure) Met() bool { return f.Ratio >= f.Goal }

// Series is one thing measured in each round.
type Series struct {
	What string
	Unit string
	All  []float64
}

func (s *Series) add(value float64) { s.All = append(s.All, value) }

// Row is something measured that is no ratio.
type Row struct{ Series }

// newFigure makes the figure of two series of the same rounds.
func newFigure(name string, goal float64, this, other Series) Figure {
	ratios := make([]float64, 0, len(this.All))
	for i := range min(len(this.All), len(other.All)) {
		if other.All[i] > 0 {
			ratios = append(ratios, this.All[i]/other.All[i])
		}
	}
	return figureOf(name, goal, this, other, ratios)
}

// inverse makes a figure of two series of which less is better, such as times: the limit to what was measured.
func inverse(name string, goal float64, measured, limit Series) Figure {
	f := newFigure(name, goal, limit, measured)
	f.This, f.Other = measured, limit
	return f
}

func figureOf(name string, goal float64, this, other Series, ratios []float64) Figure {
	low, middle, high := spread(ratios)
	return Figure{Name: name, Ratio: round3(middle), Min: round3(low), Max: round3(high), Goal: goal, This: this, Other: other}
}

// round3 cuts what no measurement holds.
func round3(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }

// spread gives the least, the middle and the greatest of the values; zeros if there are none.
func spread[T cmp.Ordered](values []T) (low, middle, high T) {
	if len(values) == 0 {
		return low, middle, high
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[0], sorted[(len(sorted)-1)/2], sorted[len(sorted)-1]
}

// quantile gives the value that a share q of the sorted values do not exceed; zero if there are none.
func quantile[T cmp.Ordered](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
