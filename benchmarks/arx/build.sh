#!/bin/sh
# Compile what a search needs of ARX, without its user interface: build.sh SOURCE TARGET
# SOURCE is a checkout of ARX, TARGET is the folder for the classes. Prints the class path.
set -eu
source=$1 target=$2
here=$(dirname "$0")
mkdir -p "$target"
target=$(cd "$target" && pwd)
jars=$(find "$(cd "$source/lib/ant" && pwd)" -name '*.jar' | sort | tr '\n' ':')
empty=$(mktemp -d)
trap 'rm -r "$empty"' EXIT
stand_in() { # Write an empty TYPE into PACKAGE if no jar has the name PATTERN.
    if [ -z "$(find "$source/lib/ant" -name "$1")" ]; then
        folder=$empty/$(echo "$2" | tr . /)
        mkdir -p "$folder"
        echo "package $2; public $3 $4 {}" >"$folder/$4.java"
    fi
}
# ARX uses PDFBox for certificates and Hadoop for models that it trains. A search does neither, so
# the names of two types suffice.
stand_in 'pdfbox-app-*.jar' org.apache.pdfbox.pdmodel.font class PDFont
stand_in 'hadoop-core-*.jar' org.apache.hadoop.io interface Writable
javac -nowarn -proc:none -encoding UTF-8 -d "$target" -sourcepath "$source/src/main:$empty" \
    -classpath "$jars" "$here/ArxSearch.java" >&2
echo "$target:${jars%:}"
