import CRUDFormats
import CRUDModel
import CRUDTestSupport
import Testing

/// Python's plistlib reads what is written here, and what it writes is read here.
@Suite struct PlistlibTests {
    private static let python = "/usr/bin/env"

    /// Items beside the corpus, numbers above all.
    private static let items: [String] = {
        var random = SeededGenerator(seed: 4)
        let integers = (0..<200).map { _ in String(Int64(bitPattern: random.next() >> (random.next() % 64))) }
        let unsigned = (0..<50).map { _ in String(random.next() | 1 << 63) }
        let beyond = (0..<50).map { _ in "\(random.next() | 1 << 63)\(random.next() % 10)" }
        let doubles = (0..<300).map { _ in Double(bitPattern: random.next()) }.filter(\.isFinite).map(\.description)
        let decimals = (0..<1000).map { _ in
            let digits = String(random.next() >> (random.next() % 60))
            let point = 1 + Int(random.next() % UInt64(digits.count))
            let zero = point == digits.count || random.next() % 4 == 0 ? "0" : ""
            let exponent = random.next() % 2 == 0 ? "e\(Int(random.next() % 40) - 20)" : ""
            return "\(digits.prefix(point)).\(digits.dropFirst(point))\(zero)\(exponent)"
        }
        return JSONCorpus.valid + integers + unsigned + beyond + doubles + decimals
    }()

    /// Runs a program of Python in a directory that holds `items.jsonl`, one item a line.
    private func run(_ program: String, in directory: TemporaryDirectory, items: [String]) throws -> [String] {
        // White space inside of texts of several lines is none of their meaning.
        let lines = items.map { $0.replacing("\r\n", with: " ").replacing("\n", with: " ") }
        try Files.write(lines.joined(separator: "\n"), to: "\(directory.path)/items.jsonl")
        let outcome = try Command.run(Self.python, ["python3", "-c", program, directory.path])
        try #require(outcome.status == .exited(0), "\(outcome.errors)")
        return outcome.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// Which items a property list cannot hold, found out with other means: exact decimals, and Python's own shortest
    /// spelling.
    @Test func refusesWhatWouldBeLost() throws {
        let program = """
            import decimal, json, re, sys
            decimal.getcontext().prec = 10000
            decimal.getcontext().Emax = decimal.MAX_EMAX
            decimal.getcontext().Emin = decimal.MIN_EMIN
            class Lost(Exception): pass
            def real(text):
                value = float(text)
                if value in (float("inf"), float("-inf")): raise Lost
                fraction = re.search(r"\\.([0-9]+)", text)
                if fraction and len(fraction[1]) > 1 and fraction[1].endswith("0"): raise Lost
                if value == 0 and re.fullmatch("-?[0.]+([eE].*)?", text): return value
                if decimal.Decimal(text) != decimal.Decimal(repr(value)): raise Lost
                return value
            def integer(text):
                digits = text.lstrip("-")
                if len(digits) > 20 or not -2**63 <= int(text) < 2**64: raise Lost
                return int(text)
            def check(value, allowed):
                if value is None: raise Lost
                if isinstance(value, str) and not allowed(value): raise Lost
                if isinstance(value, list):
                    for element in value: check(element, allowed)
                if isinstance(value, dict):
                    for name, element in value.items():
                        check(name, allowed)
                        check(element, allowed)
            forbidden = re.compile("[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")
            for line in open(sys.argv[1] + "/items.jsonl", encoding="utf-8", newline="\\n"):
                lost = []
                for name, allowed in [("xml", lambda text: not forbidden.search(text)), ("plist", lambda text: True)]:
                    try: check(json.loads(line, parse_float=real, parse_int=integer), allowed)
                    except Lost: lost.append(name)
                print(" ".join(lost))
            """
        let answers = try run(program, in: TemporaryDirectory(), items: Self.items)
        try #require(answers.count == Self.items.count)
        for (item, answer) in zip(Self.items, answers) {
            for format in [CollectionRule.Format.xml, .plist] {
                let isLost = answer.split(separator: " ").contains(Substring(format.rawValue))
                #expect((Codec(format).refusal(of: item) != nil) == isLost, "\(format) \(item.prefix(60))")
            }
        }
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func readsOurs(format: CollectionRule.Format) throws {
        let codec = Codec(format)
        let items = Self.items.filter { codec.refusal(of: $0) == nil }
        let directory = try TemporaryDirectory()
        for (number, item) in items.enumerated() {
            try Files.write(codec.encode(item), to: "\(directory.path)/\(number)")
        }
        let program = """
            import json, plistlib, sys
            for number, _ in enumerate(open(sys.argv[1] + "/items.jsonl", encoding="utf-8", newline="\\n")):
                with open(f"{sys.argv[1]}/{number}", "rb") as file: print(json.dumps(plistlib.load(file)))
            """
        let answers = try run(program, in: directory, items: items)
        try #require(answers.count == items.count)
        for (item, answer) in zip(items, answers) {
            let expected = try JSON(parsing: asPropertyListsSpell(JSON(parsing: item)))
            #expect(try JSON(parsing: answer).means(expected), "\(item.prefix(60)) was read as \(answer.prefix(60))")
        }
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func writesWhatWeRead(format: CollectionRule.Format) throws {
        let codec = Codec(format)
        // plistlib writes a carriage return as a line feed.
        let items = try Self.items.filter { item in
            try codec.refusal(of: item) == nil
                && !String(decoding: codec.encode(item), as: UTF8.self).contains("&#13;")
        }
        let directory = try TemporaryDirectory()
        let program = """
            import json, plistlib, sys
            kind = plistlib.FMT_XML if "\(format)" == "xml" else plistlib.FMT_BINARY
            for number, line in enumerate(open(sys.argv[1] + "/items.jsonl", encoding="utf-8", newline="\\n")):
                item = json.loads(line, parse_int=lambda text: -0.0 if text == "-0" else int(text))
                with open(f"{sys.argv[1]}/{number}", "wb") as file: plistlib.dump(item, file, fmt=kind)
                print()
            """
        try #require(try run(program, in: directory, items: items).count == items.count)
        for (number, item) in items.enumerated() {
            let back = try codec.decode(Files.read("\(directory.path)/\(number)"))
            let expected = try JSON(parsing: asPropertyListsSpell(JSON(parsing: item)))
            #expect(try JSON(parsing: back).means(expected), "\(item.prefix(60)) came as \(back.prefix(60))")
        }
    }
}
