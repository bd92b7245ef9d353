package httpapi

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
)

// maxBody is the limit of a body, both as sent and unpacked.
const maxBody = 1 << 20

// readJSONBody reads a body of at most limit bytes once, unpacked if it was sent with gzip. Call it after
// authentication only. What is wrong with the body is a problem: unsupported-media-type, content-too-large or
// malformed-request (broken gzip; fewer bytes than announced).
func readJSONBody(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if err := checkContentType(r.Header.Values(echo.HeaderContentType)); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// MaxBytesReader also closes the connection afterwards, so that no rest of a body is taken for a request.
	packed := http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	body, err := unpacked(r.Header.Values(echo.HeaderContentEncoding), packed)
	if err != nil {
		return nil, bodyProblem(err, limit)
	}
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, bodyProblem(err, limit)
	}
	if int64(len(content)) > limit {
		return nil, tooLarge(limit)
	}
	return content, nil
}

func unpacked(encodings []string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip": // the same thing (RFC 9110, 8.4.1.3)
		return gzip.NewReader(body)
	}
	return nil, problem.New(problem.UnsupportedMediaType, "Of the content encodings only gzip is supported.")
}

func checkContentType(values []string) error {
	if len(values) == 1 {
		if mediaType, _, err := mime.ParseMediaType(values[0]); err == nil && mediaType == echo.MIMEApplicationJSON {
			return nil
		}
	}
	return problem.New(problem.UnsupportedMediaType, "The body must be sent with Content-Type: application/json.")
}

func bodyProblem(err error, limit int64) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge(limit)
	}
	if p := problem.As(err); p != nil {
		return p
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return problem.New(problem.MalformedRequest, "The body is not what its Content-Encoding says: gzip.")
	}
	return problem.New(problem.MalformedRequest, "The body could not be read to its end.")
}

func tooLarge(limit int64) error {
	return problem.New(problem.ContentTooLarge, "The body may have at most %d bytes, unpacked.", limit)
}
