// Reads metrics in Prometheus' protobuf format from standard input, with Prometheus' own parser, and writes as
// JSON what it would store: the series with their values, and the native histograms with the bounds of their
// buckets. It ends with an error where Prometheus would refuse the scrape.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

type bucket struct {
	Lower float64 `json:"lower_s"`
	Upper float64 `json:"upper_s"`
	Count uint64  `json:"count"`
}

type native struct {
	Labels  map[string]string `json:"labels"`
	Count   uint64            `json:"count"`
	Sum     float64           `json:"sum_s"`
	Buckets []bucket          `json:"buckets"`
}

type series struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

type scrape struct {
	Types   map[string]string `json:"types"`
	Series  []series          `json:"series"`
	Natives []native          `json:"natives"`
}

func main() {
	log.SetFlags(0)
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	found, err := parse(body)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func parse(body []byte) (scrape, error) {
	found := scrape{Types: map[string]string{}, Series: []series{}, Natives: []native{}}
	parser := textparse.NewProtobufParser(body, false, true, false, false, labels.NewSymbolTable())
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			found.Types[string(name)] = string(kind)
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			found.Series = append(found.Series, series{readLabels(parser), value})
		case textparse.EntryHistogram:
			each, err := readNative(parser)
			if err != nil {
				return found, err
			}
			found.Natives = append(found.Natives, each)
		}
	}
}

func readLabels(parser textparse.Parser) map[string]string {
	var found labels.Labels
	parser.Labels(&found)
	return found.Map()
}

func readNative(parser textparse.Parser) (native, error) {
	_, _, histogram, _ := parser.Histogram()
	if histogram == nil {
		return native{}, errors.New("a histogram has no whole counts")
	}
	if err := histogram.Validate(); err != nil {
		return native{}, err
	}
	found := native{Labels: readLabels(parser), Count: histogram.Count, Sum: histogram.Sum, Buckets: []bucket{}}
	if histogram.ZeroCount > 0 {
		found.Buckets = append(found.Buckets, bucket{-histogram.ZeroThreshold, histogram.ZeroThreshold, histogram.ZeroCount})
	}
	for buckets := histogram.PositiveBucketIterator(); buckets.Next(); {
		each := buckets.At()
		if each.Count > 0 {
			found.Buckets = append(found.Buckets, bucket{each.Lower, each.Upper, each.Count})
		}
	}
	return found, nil
}
