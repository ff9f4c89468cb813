import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// The suite detects what a plugin does wrong: each fault, by the check that is meant for it.
@Suite struct FaultyPluginTests {
    static let faults = [
        ("UNKNOWN_CAPABILITY", "function table"), ("MISSING_VERSION", "function table"),
        ("MISSING_FUNCTION", "function table"), ("TOUCHES_STORAGE", "check_options touches no storage"),
        ("ODD_POINTER", "options of other kinds"), ("UNDECLARED_CAPABILITY", "capabilities of a backend"),
        ("DENIES_CAPABILITIES", "capabilities of a backend"),
        ("TAKES_ATOMIC", "refusal of what is not declared"), ("TAKES_KEYS", "refusal of what is not declared"),
        ("STRICT_SIZES", "structs of another size"), ("OWN_OUTCOME_SIZE", "structs of another size"),
        ("WRONG_CLOCK", "deadlines"), ("IGNORES_INTERRUPTS", "interrupts"), ("CHANGES_VERSION", "data version"),
        ("MISSES_CHANGES", "data version"), ("COPIES_NOTHING", "backups"), ("ALWAYS_CREATES", "collections"),
        ("CHANGES_WHAT_IT_LOOKS_AT", "collections as they are"), ("LISTS_TWICE", "collections"),
        ("NEVER_DROPS", "collections"), ("FOLDS_NAMES", "odd names of collections"),
        ("IGNORES_FORMAT", "formats apart"), ("UNTERMINATED_TEXT", "failures"), ("OVERRUNS_FAILURE", "failures"),
        ("IGNORES_ABSENT", "preconditions"), ("NEVER_REPLACES", "batches in order"),
        ("TAKES_UNDEFINED", "mutations that are not defined"),
        ("WRITES_A_HUNDRED", "large batches"), ("WRITES_ONE_COLLECTION", "batches over collections"),
        ("IGNORES_ATOMIC", "atomic batches"), ("PASSES_CHECKS", "checks in atomic batches"),
        ("SHIFTS_POSITIONS", "reading by id"), ("ALWAYS_ITEMS", "reading by id"), ("EMITS_KEYS", "reading by id"),
        ("UNSIZED_RECORDS", "reading by id"), ("KEEPS_SNAPSHOT", "seeing writes"), ("READS_SLOWLY", "reading fast"),
        ("REFUSES_BESIDE_WRITES", "reading beside writes"), ("INCLUDES_AFTER", "scanning by id"),
        ("IGNORES_LIMIT", "scanning by id"), ("IGNORES_STOP", "scanning by id"),
        ("IGNORES_REVERSE", "scanning by id"), ("IGNORES_UPPER", "scanning by id"),
        ("STARTS_AGAIN", "scanning in any order"),
        ("INCLUDES_UPPER_KEY", "scanning by key"), ("LISTS_KEYED", "scanning by key"),
        ("INCLUDES_UPPER_SEQUENCE", "scanning by sequence"), ("IGNORES_COUNT_RANGE", "counting"),
        ("SWAPS_KEYS", "keys of written records"), ("SETS_KEYS_ANYWAY", "setting keys"),
        ("NEVER_DROPS_INDEXES", "changing indexes"), ("FORGETS_SEQUENCES", "sequence numbers"),
        ("ENDS_EARLY", "numbering changes"), ("CHANGES_HISTORY", "numbering changes"),
        ("NEXT_FALLS", "numbering changes"),
        ("LISTS_SEQUENCED", "scanning by sequence"), ("FORGETS_REMOVALS", "removals"),
        ("COUNTS_REMOVALS", "removals"), ("TRIMS_ALL", "trimming removals"),
        ("CHANGES_IDENTITY", "trimming removals"), ("KEEPS_IDENTITY", "history of a collection"),
        ("FORGETS_FORGOTTEN", "history of a collection"), ("LOSES_TAKEN", "history of another collection"),
        ("EXPIRES_EARLY", "removing what has expired"),
        ("IGNORES_EXPIRY_LIMIT", "removing what has expired"), ("SKIPS_EXPIRY_NUMBERS", "removing what has expired"),
        ("HIDES_NEXT_EXPIRY", "removing what has expired"), ("NUMBERS_EXPIRY_TWICE", "reopening after expiry"),
        ("EXPIRES_LATE", "expiry"), ("FOLDS_IDS", "odd ids"), ("CHANGES_ITEMS", "odd items"),
        ("CUTS_REVISIONS", "odd revisions"), ("CUTS_ITEMS", "large items"), ("FORGETS", "reopening"),
        ("FORGETS_LAST_SEQUENCE", "reopening"), ("CHANGES_STORAGE_IDENTITY", "reopening"),
        ("IGNORES_EXPECTED_STORAGE", "reopening"),
        ("LOSES_WRITES", "reopening after kill -9"),
    ]

    /// Each check has a fault that it detects.
    @Test func everyCheckHasItsFault() {
        #expect(Set(Check.all.map(\.name)) == Set(Self.faults.map(\.1)))
    }

    @Test(arguments: faults)
    func detects(fault: String, check: String) throws {
        let verdict = try Self.verdict(fault: fault, check: check)
        guard case .failed(let reasons) = verdict else {
            Issue.record("\(check): \(verdict)")
            return
        }
        #expect(reasons.allSatisfy { !$0.isEmpty })
    }

    /// The same plugin without a fault.
    @Test(arguments: Set(faults.map(\.1)).sorted())
    func acceptsPluginWithoutFault(check: String) throws {
        let isShared = check == "numbering changes"
        #expect(try Self.verdict(fault: isShared ? "SHARED" : "NONE", check: check) == .passed)
    }

    /// Storage that numbers changes itself, of which only the order of numbers is known.
    @Test(arguments: [
        "function table", "refusal of what is not declared", "structs of another size", "collections as they are",
        "sequence numbers", "removals", "trimming removals", "history of a collection", "expiry",
        "removing what has expired", "reopening after expiry", "reopening", "reopening after kill -9",
    ])
    func acceptsNumbersOfTheStorage(check: String) throws {
        #expect(try Self.verdict(fault: "SHARED", check: check) == .passed)
    }

    @Test(arguments: ["scanning by sequence", "history of another collection"])
    func doesNotCheckNumbersOfTheStorage(check: String) throws {
        let verdict = try Self.verdict(fault: "SHARED", check: check)
        #expect(verdict == .notApplicable("the storage numbers changes itself"))
    }

    /// Tables and records of another version of the contract.
    @Test(
        arguments: ["SHORT_TABLE", "LONG_TABLE", "LONG_RECORDS"],
        ["function table", "structs of another size", "seeing writes", "reading by id", "counting", "odd ids"])
    func acceptsOtherSizes(variant: String, check: String) throws {
        #expect(try Self.verdict(fault: variant, check: check) == .passed)
    }

    @Test func doesWithoutOptionalFunctions() throws {
        let verdict = try Self.verdict(fault: "SHORT_TABLE", check: "data version")
        #expect(verdict == .notApplicable("the plugin has no data_version"))
    }

    private static func verdict(fault: String, check name: String) throws -> ConformanceSuite.Verdict {
        let faulty = try CheckedPlugin(fault: fault)
        // This one writes many records within a time, which syncs would use up.
        let more = name == "interrupts" ? #","synchronous":"off""# : ""
        let suite = ConformanceSuite(
            try ExportedPlugin(path: faulty.path),
            options: #"{"path":"\#(faulty.directory.path)/main.sqlite"\#(more)}"#,
            crashWorkload: CrashWorkloadProgram(
                path: try BuildProducts.path(of: "crudd-plugin-check"),
                arguments: ["--crash-workload", faulty.path, "here"]))
        let check = try #require(Check.all.first { $0.name == name })
        return suite.verdict(check, format: check.scope == .records ? "json" : nil)
    }
}
