//! Functions, by example. The expectations are what Helm prints.

mod common;

use common::{check, check_with};
use serde_json::json;

#[test]
fn text() {
    for (template, expect) in [
        (
            "{{ trim \"  a \" }}|{{ trimAll \"$\" \"$5$\" }}|{{ trimSuffix \"-\" \"a-\" }}|{{ trimPrefix \"-\" \"-a\" }}",
            "a|5|a|a",
        ),
        (
            "{{ upper \"a\" }}{{ lower \"B\" }} {{ title \"a bc\" }} {{ untitle \"Ab Cd\" }} {{ nospace \"a b\" }}",
            "Ab A Bc ab cd ab",
        ),
        (
            "{{ contains \"b\" \"abc\" }} {{ hasPrefix \"a\" \"abc\" }} {{ hasSuffix \"a\" \"abc\" }}",
            "true true false",
        ),
        (
            "{{ quote \"a\\\"b\" 5 true }} {{ squote \"a\" 5 }}",
            "\"a\\\"b\" \"5\" \"true\" 'a' '5'",
        ),
        (
            "{{ replace \".\" \"-\" \"1.2.3\" }} {{ repeat 3 \"ab\" }} {{ substr 1 3 \"abcd\" }} {{ trunc 2 \"abc\" }} {{ trunc -2 \"abc\" }}",
            "1-2-3 ababab bc ab bc",
        ),
        (
            "{{ trunc 2 \"aé\" }}|{{ abbrev 5 \"abcdefg\" }}|{{ initials \"First Try\" }}",
            "a|ab...|FT",
        ),
        (
            "{{ (split \":\" \"a:b\")._1 }}{{ (split \":\" \"a\")._1 }}|{{ (splitn \":\" 2 \"a:b:c\")._1 }}|{{ splitList \",\" \"a,b\" }}",
            "b|b:c|[a b]",
        ),
        (
            "{{ join \"-\" (list 1 \"a\" nil true) }} {{ join \",\" \"x\" }} {{ plural \"one\" \"many\" 1 }} {{ plural \"one\" \"many\" 2 }}",
            "1-a-true x one many",
        ),
        (
            "{{ camelcase \"http_server\" }} {{ snakecase \"FirstName\" }} {{ kebabcase \"HTTPServer\" }}",
            "HttpServer first_name http-server",
        ),
        (
            "{{ base \"a/b.c\" }} {{ ext \"a/b.c\" }} {{ toString 5 }}",
            "b.c .c 5",
        ),
        (
            "{{ print \"a\" 1 2 \"b\" }}|{{ println \"a\" 1 }}",
            "a1 2b|a 1\n",
        ),
        (
            "{{ html \"<a>\" }} {{ urlquery \"a b/c\" }} {{ js \"it's\" }}",
            "&lt;a&gt; a+b%2Fc it\\'s",
        ),
        ("{{ b64enc \"hi\" }} {{ b64dec \"aGk=\" }}", "aGk= hi"),
        (
            "{{ sha256sum \"\" }}",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
    ] {
        check(template, expect);
    }
}

#[test]
fn numbers() {
    for (template, expect) in [
        (
            "{{ int \"5\" }} {{ int 5.9 }} {{ int \"x\" }} {{ int64 \"0x10\" }} {{ int \"5.0\" }} {{ int true }} {{ atoi \"7\" }}",
            "5 5 0 16 5 1 7",
        ),
        (
            "{{ add 1 2 3 }} {{ add1 1 }} {{ sub 5 2 }} {{ mul 2 3 4 }} {{ div 7 2 }} {{ mod 7 2 }}",
            "6 2 3 24 3 1",
        ),
        (
            "{{ max 1 5 3 }} {{ min 4 2 }} {{ ceil 1.2 }} {{ floor 1.8 }} {{ round 1.256 2 }}",
            "5 2 2 1 1.26",
        ),
        (
            "{{ addf 1.5 2 }} {{ subf 3 1.5 }} {{ mulf 2 1.5 }} {{ divf 3 2 }}",
            "3.5 1.5 3 1.5",
        ),
        (
            "{{ until 3 }} {{ untilStep 2 7 2 }} {{ seq 3 }} {{ seq 2 4 }} {{ seq 5 -2 1 }} {{ untilStep 3 0 -1 }}",
            "[0 1 2] [2 4 6] 1 2 3 2 3 4 5 3 1 [3 2 1]",
        ),
        (
            "{{ 0x1F }} {{ 1e3 }} {{ 'a' }} {{ -5 }} {{ toDecimal \"0755\" }} {{ float64 \"1.5\" }}",
            "31 1000 97 -5 493 1.5",
        ),
    ] {
        check(template, expect);
    }
}

#[test]
fn lists() {
    for (template, expect) in [
        (
            "{{ $l := list 1 2 3 }}{{ first $l }} {{ last $l }} {{ rest $l }} {{ initial $l }} {{ reverse $l }}",
            "1 3 [2 3] [1 2] [3 2 1]",
        ),
        (
            "{{ append (list 1) 2 }} {{ prepend (list 1) 0 }} {{ concat (list 1) (list 2 3) }} {{ $l := list 1 }}{{ $_ := append $l 2 }}{{ $l }}",
            "[1 2] [0 1] [1 2 3] [1]",
        ),
        (
            "{{ has 2 (list 1 2) }} {{ has 2.0 (list 1 2) }} {{ has 1 nil }} {{ without (list 1 2 3) 2 }} {{ uniq (list 1 1 2) }} {{ compact (list 0 1 \"\" 2) }}",
            "true false false [1 3] [1 2] [1 2]",
        ),
        (
            "{{ slice (list 1 2 3) 1 }} {{ slice (list 1 2 3) 1 2 }} {{ chunk 2 (list 1 2 3) }} {{ sortAlpha (list \"b\" \"a\") }}",
            "[2 3] [2] [[1 2] [3]] [a b]",
        ),
        (
            "{{ index (list 1 (list 2 3)) 1 0 }} {{ len (list 1 2) }} {{ index (dict \"a\" 1) \"a\" }} {{ len \"é\" }}",
            "2 2 1 2",
        ),
    ] {
        check(template, expect);
    }
}

#[test]
fn maps() {
    for (template, expect) in [
        (
            "{{ $d := dict \"a\" 1 \"b\" 2 }}{{ get $d \"a\" }}{{ get $d \"x\" }} {{ hasKey $d \"b\" }} {{ pick $d \"a\" }} {{ omit $d \"a\" }} {{ keys $d }}",
            "1 true map[a:1] map[b:2] [a b]",
        ),
        (
            "{{ dict \"odd\" }} {{ dict 1 2 }} {{ pluck \"a\" (dict \"a\" 1) (dict) (dict \"a\" 2) }}",
            "map[odd:] map[1:2] [1 2]",
        ),
        (
            "{{ $d := dict \"a\" (dict \"b\" 1) }}{{ dig \"a\" \"b\" \"d\" $d }} {{ dig \"a\" \"x\" \"d\" $d }} {{ dig \"x\" \"b\" \"d\" $d }}",
            "1 d d",
        ),
    ] {
        check(template, expect);
    }
}

#[test]
fn types_and_logic() {
    for (template, expect) in [
        (
            "{{ kindOf 1 }} {{ kindOf \"a\" }} {{ kindOf (list) }} {{ kindOf (dict) }} {{ kindOf nil }} {{ kindIs \"map\" (dict) }}",
            "int string slice map invalid true",
        ),
        (
            "{{ typeOf 1.5 }} {{ typeOf (list) }} {{ typeIs \"string\" \"\" }} {{ typeIsLike \"common.Values\" .Values }}",
            "float64 []interface {} true true",
        ),
        (
            "{{ deepEqual (list 1 (dict \"a\" 2)) (list 1 (dict \"a\" 2)) }} {{ deepEqual 1 1.0 }}",
            "true false",
        ),
        (
            "{{ all 1 true }} {{ any 0 \"\" }} {{ not 0 }} {{ empty (dict) }}",
            "true false true true",
        ),
        (
            "{{ .Values.AsMap | keys }} {{ lookup \"v1\" \"Secret\" \"\" \"x\" }} {{ getHostByName \"x\" | quote }}",
            "[] map[] \"\"",
        ),
        (
            "{{ semverCompare \">=1.28-0\" .Capabilities.KubeVersion.Version }} {{ (semver \"v1.2.3-rc.1\").Minor }}",
            "true 2",
        ),
    ] {
        check(template, expect);
    }
    check_with(
        &json!({"n": 5}),
        "{{ kindOf .Values.n }} {{ typeOf .Values }}",
        "float64 common.Values",
    );
}

#[test]
fn regular_expressions() {
    for (template, expect) in [
        (
            "{{ regexMatch \"^a+$\" \"aa\" }} {{ regexMatch \"[\" \"aa\" }} {{ regexFind \"b+\" \"abbc\" }} {{ regexFindAll \"[ab]\" \"abc\" -1 }}",
            "true false bb [a b]",
        ),
        (
            "{{ regexReplaceAll \"a(x*)b\" \"-ab-axxb-\" \"${1}W\" }} {{ regexReplaceAllLiteral \"a\" \"aba\" \"$1\" }}",
            "-W-xxW- $1b$1",
        ),
        (
            "{{ regexSplit \"z+\" \"pizza\" -1 }} {{ regexQuoteMeta \"1.2\" }}",
            "[pi a] 1\\.2",
        ),
    ] {
        check(template, expect);
    }
}
