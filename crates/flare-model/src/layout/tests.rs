//! Tables of layouts and values, many of them the examples of Go's own documentation and behaviour: what each
//! value is read as, or what it is refused for.

use super::known::*;
use super::{Instant, Layout};
use proptest::prelude::*;

fn parse(layout: &str, value: &str) -> Result<Instant, String> {
    let layout = Layout::compile(layout).map_err(|error| error.to_string())?;
    layout.parse(value).map_err(|error| error.to_string())
}

#[test]
fn values_are_read_as_go_reads_them() {
    for (layout, value, seconds, nanos) in [
        // The well-known layouts with Go's own examples.
        (ANSIC, "Thu Feb  4 21:00:57 2010", 1_265_317_257, 0),
        (UNIX_DATE, "Thu Feb  4 21:00:57 PST 2010", 1_265_317_257, 0),
        (RUBY_DATE, "Thu Feb 04 21:00:57 -0800 2010", 1_265_346_057, 0),
        (RUBY_DATE, "Thu Feb 04 21:00:57 -0000 2010", 1_265_317_257, 0),
        (RUBY_DATE, "Thu Feb 04 21:00:57 +1130 2010", 1_265_275_857, 0),
        (RFC822, "04 Feb 10 21:00 PST", 1_265_317_200, 0),
        (RFC822Z, "04 Feb 10 21:00 -0800", 1_265_346_000, 0),
        (RFC850, "Thursday, 04-Feb-10 21:00:57 PST", 1_265_317_257, 0),
        (RFC1123, "Thu, 04 Feb 2010 21:00:57 PDT", 1_265_317_257, 0),
        (RFC1123, "Thu, 04 Feb 2010 21:00:57 UTC", 1_265_317_257, 0),
        (RFC1123Z, "Thu, 04 Feb 2010 21:00:57 -0800", 1_265_346_057, 0),
        (RFC3339, "2010-02-04T21:00:57-08:00", 1_265_346_057, 0),
        (RFC3339, "2010-02-04T21:00:57Z", 1_265_317_257, 0),
        (RFC3339, "2008-09-17T20:04:26Z", 1_221_681_866, 0),
        (RFC3339, "2000-12-26T01:15:06+04:20", 977_777_706, 0),
        (RFC3339_NANO, "2010-02-04T21:00:57.012345678-08:00", 1_265_346_057, 12_345_678),
        (RFC3339_NANO, "2010-02-04T21:00:57Z", 1_265_317_257, 0),
        (KITCHEN, "9:00PM", -62_167_143_600, 0),
        (KITCHEN, "12:00PM", -62_167_176_000, 0),
        (KITCHEN, "12:00AM", -62_167_219_200, 0),
        (STAMP, "Feb  4 21:00:57", -62_164_205_943, 0),
        (STAMP_MILLI, "Feb  4 21:00:57.012", -62_164_205_943, 12_000_000),
        (STAMP_MICRO, "Feb  4 21:00:57.012345", -62_164_205_943, 12_345_000),
        (STAMP_NANO, "Feb  4 21:00:57.012345678", -62_164_205_943, 12_345_678),
        (DATE_TIME, "2010-02-04 21:00:57", 1_265_317_257, 0),
        (DATE_ONLY, "2010-02-04", 1_265_241_600, 0),
        (TIME_ONLY, "21:00:57", -62_167_143_543, 0),
        // A fraction after the seconds, though the layout has none.
        (ANSIC, "Thu Feb  4 21:00:57.0 2010", 1_265_317_257, 0),
        (UNIX_DATE, "Thu Feb  4 21:00:57.01 PST 2010", 1_265_317_257, 10_000_000),
        (RFC1123Z, "Thu, 04 Feb 2010 21:00:57.01234 -0800", 1_265_346_057, 12_340_000),
        (RFC3339, "2010-02-04T21:00:57.0123456789-08:00", 1_265_346_057, 12_345_678),
        (RFC3339, "2010-02-04T21:00:57,5Z", 1_265_317_257, 500_000_000),
        // White space and case.
        (ANSIC, "Thu Feb 4 21:00:57 2010", 1_265_317_257, 0),
        (ANSIC, "Thu      Feb     4     21:00:57     2010", 1_265_317_257, 0),
        (ANSIC, "THU FEB 4 21:00:57 2010", 1_265_317_257, 0),
        (ANSIC, "thu feb 4 21:00:57 2010", 1_265_317_257, 0),
        ("Jan 2 2006 ", "feb 4 2010", 1_265_241_600, 0),
        ("Jan 2 2006 ", "feb 4 2010    ", 1_265_241_600, 0),
        ("Monday January 2 2006", "FRIDAY may 7 2010", 1_273_190_400, 0),
        // Fractions in the layout.
        ("Mon Jan _2 15:04:05.000 2006", "Thu Feb  4 21:00:57.012 2010", 1_265_317_257, 12_000_000),
        ("Mon Jan _2 15:04:05,000000 2006", "Thu Feb  4 21:00:57.012345 2010", 1_265_317_257, 12_345_000),
        ("Mon Jan _2 15:04:05,000 2006", "Thu Feb  4 21:00:57,012 2010", 1_265_317_257, 12_000_000),
        ("2006.01.02.15.04.05.0", "2010.02.04.21.00.57.0", 1_265_317_257, 0),
        ("2006.01.02.15.04.05.00", "2010.02.04.21.00.57.01", 1_265_317_257, 10_000_000),
        ("2006-01-02 15:04:05.9999 -0700 MST", "2010-02-04 21:00:57 -0800 PST", 1_265_346_057, 0),
        (
            "2006-01-02 15:04:05.9999 -0700 MST",
            "2010-02-04 21:00:57.012345678 -0800 PST",
            1_265_346_057,
            12_345_678,
        ),
        (
            "2006-01-02 15:04:05,999999999 -0700 MST",
            "2010-02-04 21:00:57.0123 -0800 PST",
            1_265_346_057,
            12_300_000,
        ),
        ("Jan _2 15:04:05.999", "Feb  4 21:00:57.012345678", -62_164_205_943, 12_345_678),
        ("05.000000000000", "57.012345678999", -62_167_219_143, 12_345_678),
        ("2006 .000", "2010 .250", 1_262_304_000, 250_000_000),
        // The day of the year.
        ("2006-01-02 002 15:04:05", "2010-02-04 035 21:00:57", 1_265_317_257, 0),
        ("2006-01 002 15:04:05", "2010-02 035 21:00:57", 1_265_317_257, 0),
        ("2006-002 15:04:05", "2010-035 21:00:57", 1_265_317_257, 0),
        ("200600201 15:04:05", "201003502 21:00:57", 1_265_317_257, 0),
        ("200600204 15:04:05", "201003504 21:00:57", 1_265_317_257, 0),
        ("2006 __2", "2010  35", 1_265_241_600, 0),
        ("2006 __2", "2010 5", 1_262_649_600, 0),
        ("2006-002", "2020-060", 1_582_934_400, 0),
        ("2006-002", "2020-366", 1_609_372_800, 0),
        ("2006-002", "2021-365", 1_640_908_800, 0),
        // Zones.
        ("2006-01-02T15:04:05-070000", "1871-01-01T05:33:02-003408", -3_124_115_570, 0),
        ("2006-01-02T15:04:05-07:00:00", "1871-01-01T05:33:02+00:34:08", -3_124_119_666, 0),
        ("2006-01-02T15:04:05Z070000", "1871-01-01T05:33:02-003408", -3_124_115_570, 0),
        ("2006-01-02T15:04:05Z07:00:00", "1871-01-01T05:33:02Z", -3_124_117_618, 0),
        ("2006-01-02T15:04:05Z0700", "1871-01-01T05:33:02+0130", -3_124_123_018, 0),
        ("2006-01-02T15:04:05-07", "1871-01-01T05:33:02-02", -3_124_110_418, 0),
        ("2006-01-02T15:04:05Z07", "1871-01-01T05:33:02+01", -3_124_121_218, 0),
        ("2006-01-02 -07:00", "2010-02-04 +24:60", 1_265_151_600, 0),
        ("2006-01-02 -0700 MST", "2010-02-04 +0300 UTC", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 +03", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 ChST", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 WITA", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 ESAST", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 GMT", 1_265_241_600, 0),
        ("2006-01-02 MST", "2010-02-04 GMT+3", 1_265_230_800, 0),
        (UNIX_DATE, "Thu Feb  4 13:00:57 GMT-8 2010", 1_265_317_257, 0),
        // Years, hours, and words around the verbs.
        ("06 01 02", "69 02 04", -28_598_400, 0),
        ("06 01 02", "68 02 04", 3_095_539_200, 0),
        ("2006", "0000", -62_167_219_200, 0),
        ("Jan 2", "Feb 29", -62_162_121_600, 0),
        ("2006-1-2 3pm", "2010-12-4 9pm", 1_291_496_400, 0),
        ("2006-1-2 03PM", "2010-2-4 00AM", 1_265_241_600, 0),
        ("2006-01-02 15 PM", "2010-02-04 13 PM", 1_265_288_400, 0),
        ("2006-01-02 15:4:5", "2010-02-04 7:8:9", 1_265_267_289, 0),
        ("15:04_20060102", "14:38_20150618", 1_434_638_280, 0),
        (
            "Hi Janet, the Month is January: Jan _2 15:04:05 2006",
            "Hi Janet, the Month is February: Feb  4 21:00:57 2010",
            1_265_317_257,
            0,
        ),
        ("2006年01月02日", "2010年02月04日", 1_265_241_600, 0),
    ] {
        assert_eq!(parse(layout, value), Ok(Instant { seconds, nanos }), "{value:?} as {layout:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_the_piece_that_failed() {
    for (layout, value, expected) in [
        (ANSIC, "Feb  4 21:00:60 2010", r#""Feb  4 21:00:60 2010" does not fit "Mon""#),
        (ANSIC, "Thu Feb  4 21:00:57 @2010", r#""@2010" does not fit "2006""#),
        (ANSIC, "Thu Feb  4 21:00:60 2010", "second out of range"),
        (ANSIC, "Thu Feb  4 21:61:57 2010", "minute out of range"),
        (ANSIC, "Thu Feb  4 24:00:60 2010", "hour out of range"),
        (ANSIC, "Thu Dec 00 21:00:57 2010", "day out of range"),
        (ANSIC, "Thu Dec 32 21:00:57 2010", "day out of range"),
        (ANSIC, "Thu Feb 29 21:00:57 2010", "day out of range"),
        (ANSIC, "Thu Feb 29 21:00:57 1900", "day out of range"),
        (ANSIC, "Thu Apr 31 21:00:57 2010", "day out of range"),
        ("Mon Jan _2 15:04:05.000 2006", "Thu Feb  4 23:00:59x01 2010", r#""x01 2010" does not fit ".000""#),
        ("Mon Jan _2 15:04:05.000 2006", "Thu Feb  4 23:00:59.xxx 2010", "does not fit"),
        ("Mon Jan _2 15:04:05.000 2006", "Thu Feb  4 23:00:59.-123 2010", "does not fit"),
        (STAMP_NANO, "Dec  7 11:22:01.000000", r#"".000000" does not fit ".000000000""#),
        (STAMP_NANO, "Dec  7 11:22:01.0000000000", r#"extra text "0""#),
        (RFC3339, "2006-01-02T15:04:05Z07:00", r#"extra text "07:00""#),
        (
            RFC3339,
            "2006-01-02T15:04_abc",
            r#"cannot read "2006-01-02T15:04_abc" as "2006-01-02T15:04:05Z07:00": "_abc" does not fit ":""#,
        ),
        (RFC3339, "2006-01-02T15:04:05_abc", r#""_abc" does not fit "Z07:00""#),
        (RFC3339, "2006-01-02T15:04:05Z_abc", r#"extra text "_abc""#),
        (RFC3339, "2010-02-04T21:00:67.012345678-08:00", "second out of range"),
        (RFC3339, "2010-02-04T21:00:57+25:00", "time zone offset hour out of range"),
        (RFC3339, "2010-02-04T21:00:57+23:61", "time zone offset minute out of range"),
        (RFC3339, "2010-02-04T21:00:57", r#""" does not fit "Z07:00""#),
        (RFC3339, "2010-02-04t21:00:57Z", r#""t21:00:57Z" does not fit "T""#),
        (RFC3339, "+2010-02-04T21:00:57Z", r#"does not fit "2006""#),
        (RFC3339, "", r#""" does not fit "2006""#),
        ("_2 Jan 06 15:04 MST", "4 --- 00 00:00 GMT", r#"does not fit "Jan""#),
        ("_2 January 06 15:04 MST", "4 --- 00 00:00 GMT", r#"does not fit "January""#),
        ("Jan _2 002 2006", "Feb  4 034 2006", "day of year does not match day"),
        ("Jan _2 002 2006", "Feb  4 004 2006", "day of year does not match month"),
        ("2006-002", "2021-366", "day of year out of range"),
        ("2006-002", "2020-367", "day of year out of range"),
        ("2006-002", "2020-000", "day of year out of range"),
        ("2006-002", "2020-35", r#""35" does not fit "002""#),
        ("01-02", "00-01", "month out of range"),
        ("01-02", "13-01", "month out of range"),
        ("01 MST", "1 MST", r#""1 MST" does not fit "01""#),
        ("06", "-5", r#""-5" does not fit "06""#),
        ("3PM", "13PM", "hour out of range"),
        ("3PM", "9pm", r#""pm" does not fit "PM""#),
        ("3pm", "9PM", r#""PM" does not fit "pm""#),
        ("2006 MST", "2010 pst", r#""pst" does not fit "MST""#),
        ("2006 MST", "2010 GMT+33", r#"extra text "+33""#),
        ("2006-01", "2010 -01", r#"" -01" does not fit "-""#),
        ("2006 01", "2010-01", r#""-01" does not fit " ""#),
        ("2006", "20é", r#""20é" does not fit "2006""#),
        ("2006é", "2010è", "does not fit"),
        ("2006", "2010 ", r#"extra text " ""#),
    ] {
        let error = parse(layout, value).expect_err(value);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_layout_without_a_verb_is_refused_with_a_hint() {
    for layout in ["", "yyyy-MM-dd", "%Y-%m-%d", "Month", "iso"] {
        let error = Layout::compile(layout).expect_err(layout).to_string();
        assert!(error.contains(&format!("{layout:?}")), "{error}");
        assert!(error.contains("2006-01-02"), "{error}");
    }
}

#[test]
fn a_long_value_is_not_repeated_whole() {
    let error = parse(RFC3339, &"x".repeat(1_000_000)).expect_err("not a date");
    assert!(error.len() < 400, "{}", error.len());
}

proptest! {
    #[test]
    fn no_layout_and_no_value_panics(layout in ".*", value in ".*") {
        let _ = parse(&layout, &value);
    }

    #[test]
    fn no_text_of_verbs_and_digits_panics(
        layout in "(2006|06|1|01|Jan|January|Mon|_2|__2|002|15|3|05|\\.000|,99|PM|MST|-07:00|Z0700| |é){1,8}",
        value in "[-0-9 .,:+ZAPMGTUCé]{0,24}",
    ) {
        let _ = parse(&layout, &value);
    }

    #[test]
    fn no_text_panics_as_rfc_3339(value in ".*", near in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:]{8}[.0-9Z+:é-]{0,9}") {
        let _ = super::rfc3339::parse(&value);
        let _ = super::rfc3339::parse(&near);
    }
}
