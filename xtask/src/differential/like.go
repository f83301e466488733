// Answers, a line of JSON for each line of JSON, how Go itself reads a pattern or a date.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"time"
)

type question struct {
	Pattern *string
	Texts   []string
	Layout  string
	Seconds int64
	Nanos   int64
	// Places of the date's text that are left out, one at a time.
	Cuts []int
}

type date struct {
	Value   string `json:"value"`
	Ok      bool   `json:"ok"`
	Seconds int64  `json:"seconds"`
	Nanos   int    `json:"nanos"`
}

type answer struct {
	// Why Go refuses the pattern.
	Refused string `json:"refused"`
	Matches []bool `json:"matches"`
	Dates   []date `json:"dates"`
}

func pattern(q question) (a answer) {
	compiled, err := regexp.Compile(*q.Pattern)
	if err != nil {
		a.Refused = err.Error()
		return
	}
	for _, text := range q.Texts {
		a.Matches = append(a.Matches, compiled.MatchString(text))
	}
	return
}

func dates(q question) (a answer) {
	whole := time.Unix(q.Seconds, q.Nanos).UTC().Format(q.Layout)
	values := []string{whole}
	for _, cut := range q.Cuts {
		if len(whole) > 0 {
			cut %= len(whole)
			values = append(values, whole[:cut]+whole[cut+1:])
		}
	}
	for _, value := range values {
		read, err := time.Parse(q.Layout, value)
		a.Dates = append(a.Dates, date{value, err == nil, read.Unix(), read.Nanosecond()})
	}
	return
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		a := answer{}
		if q.Pattern != nil {
			a = pattern(q)
		} else {
			a = dates(q)
		}
		line, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		out.Write(append(line, '\n'))
	}
}
