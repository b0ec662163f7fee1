// Evaluates alerting rules with Prometheus' own rule engine: once a minute, over series that it reads from standard
// input in the notation of Prometheus' own tests (`name{label="value"} 0+10x30`), one a line. It writes as JSON which
// alerts have fired at any time, with their labels and annotations as they were last. It ends with an error where
// Prometheus would refuse the rules or could not evaluate one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const step = time.Minute

type alert struct {
	Minute      int               `json:"minute"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: alerts RULES MINUTES")
	}
	minutes, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	series, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	found, err := evaluate(os.Args[1], string(series), minutes)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func evaluate(path, series string, minutes int) (map[string]alert, error) {
	language := parser.NewParser(parser.Options{})
	suite, err := promqltest.NewLazyLoader("load 1m\n"+series, promqltest.LazyLoaderOpts{Parser: language})
	if err != nil {
		return nil, err
	}
	defer suite.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:    rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()),
		AppendableV2: suite.Storage(),
		Context:      context.Background(),
		NotifyFunc:   func(context.Context, string, ...*rules.Alert) {},
		Logger:       promslog.NewNopLogger(),
		Parser:       language,
	})
	groups, refused := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, path)
	if refused != nil {
		return nil, errors.Join(refused...)
	}
	fired := map[string]alert{}
	var failed error
	for minute := 0; minute <= minutes; minute++ {
		at := time.Unix(0, 0).UTC().Add(time.Duration(minute) * step)
		suite.WithSamplesTill(at, func(err error) {
			failed = errors.Join(failed, err)
			for _, group := range groups {
				group.Eval(suite.Context(), at)
				failed = errors.Join(failed, note(group, minute, fired))
			}
		})
		if failed != nil {
			return nil, failed
		}
	}
	return fired, nil
}

func note(group *rules.Group, minute int, fired map[string]alert) error {
	var failed error
	for _, rule := range group.Rules() {
		failed = errors.Join(failed, rule.LastError())
		alerting, isAlerting := rule.(*rules.AlertingRule)
		if !isAlerting {
			continue
		}
		for _, active := range alerting.ActiveAlerts() {
			if active.State == rules.StateFiring {
				first := minute
				if before, isThere := fired[rule.Name()]; isThere {
					first = before.Minute
				}
				fired[rule.Name()] = alert{first, active.Labels.Map(), active.Annotations.Map()}
			}
		}
	}
	return failed
}
