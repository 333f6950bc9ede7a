package embed

import (
	"math"
)

// A Vector is what is compared with stored vectors: that of a question, or the
// stored form's own. Only its direction counts.
type Vector struct {
	values []int32 // -steps to steps
	norm   float64
}

// steps is how finely a question's vector is rounded. Products with 8192 stored
// bytes stay within an int32.
const steps = 2000

// VectorOf rounds a vector.
func VectorOf(v []float32) Vector {
	q := Vector{values: make([]int32, len(v))}
	most := largest(v)
	for i, x := range v {
		q.values[i] = int32(math.Round(float64(x) / most * steps))
		q.norm += float64(q.values[i]) * float64(q.values[i])
	}
	q.norm = math.Sqrt(q.norm)
	return q
}

// Dimensions returns the vector's length; 0 of the zero Vector, which is none.
func (q Vector) Dimensions() int { return len(q.values) }

// Encode makes the stored form of a vector: a byte for each dimension, 128 for
// zero, scaled so that the largest is 1 or 255. A cosine of two vectors changes
// by less than 0.001 in hundreds of dimensions.
func Encode(v []float32) []byte {
	most := largest(v)
	stored := make([]byte, len(v))
	for i, x := range v {
		stored[i] = byte(128 + int(math.Round(float64(x)/most*127)))
	}
	return stored
}

// Stored returns the stored form of a question's vector, for an index that
// compares stored forms.
func (q Vector) Stored() []byte {
	v := make([]float32, len(q.values))
	for i, x := range q.values {
		v[i] = float32(x)
	}
	return Encode(v)
}

func largest(v []float32) (most float64) {
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	if most == 0 {
		return 1
	}
	return most
}

// Norm returns the length of a stored vector, as Cosine takes it.
func Norm(stored []byte) float32 {
	var sum int32
	for _, b := range stored {
		d := int32(b) - 128
		sum += d * d
	}
	return float32(math.Sqrt(float64(sum)))
}

// Cosine returns how nearly a stored vector points as the question's: 1 for the
// same direction, 0 for nothing in common. It returns -1 for a vector of another
// length.
func (q Vector) Cosine(stored []byte, norm float32) float64 {
	if len(stored) != len(q.values) || norm == 0 || q.norm == 0 {
		return -1
	}
	var sum int32
	for i, v := range q.values[:len(stored)] {
		sum += v * (int32(stored[i]) - 128)
	}
	return float64(sum) / (q.norm * float64(norm))
}
