import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// The suite finds what a plugin does wrong: each fault, with the check that is there for it.
@Suite struct FaultyPluginTests {
    static let faults = [
        ("UNKNOWN_CAPABILITY", "function table"), ("MISSING_VERSION", "function table"),
        ("TOUCHES_STORAGE", "check_options touches no storage"), ("ODD_POINTER", "options of other kinds"),
        ("UNDECLARED_CAPABILITY", "capabilities of a backend"), ("ALWAYS_CREATES", "collections"),
        ("LISTS_TWICE", "collections"), ("NEVER_DROPS", "collections"), ("FOLDS_NAMES", "odd names of collections"),
        ("IGNORES_FORMAT", "formats apart"), ("UNTERMINATED_TEXT", "failures"), ("OVERRUNS_FAILURE", "failures"),
        ("IGNORES_ABSENT", "preconditions"), ("NEVER_REPLACES", "batches in order"),
        ("WRITES_A_HUNDRED", "large batches"), ("WRITES_ONE_COLLECTION", "batches over collections"),
        ("IGNORES_ATOMIC", "atomic batches"), ("PASSES_CHECKS", "checks in atomic batches"),
        ("TAKES_ATOMIC", "refusal of what is not declared"), ("TAKES_FILTER", "refusal of what is not declared"),
        ("SHIFTS_POSITIONS", "reading by id"),
        ("ALWAYS_ITEMS", "reading by id"), ("INCLUDES_AFTER", "walking by id"), ("IGNORES_LIMIT", "walking by id"),
        ("IGNORES_STOP", "walking by id"), ("REVERSES", "walking by id"), ("IGNORES_COUNT_PREFIX", "counting"),
        ("KEEPS_SNAPSHOT", "seeing writes"), ("READS_SLOWLY", "reading fast"),
        ("REFUSES_BESIDE_WRITES", "reading beside writes"), ("IGNORES_FILTER", "filters"),
        ("IGNORES_COUNT_FILTER", "filters"), ("IGNORES_SORT", "sorts"),
        ("IGNORES_AFTER", "sorts"), ("FOLDS_IDS", "odd ids"), ("CHANGES_ITEMS", "odd items"),
        ("CUTS_REVISIONS", "odd revisions"), ("CUTS_ITEMS", "large items"), ("FORGETS", "reopening"),
        ("LOSES_WRITES", "reopening after kill -9"),
    ]

    /// Every check is made for something.
    @Test func everyCheckHasItsFault() {
        let all = Set((Check.beforeOpening + Check.ofBackend + Check.ofRecords).map(\.name))
        #expect(all == Set(Self.faults.map(\.1)))
    }

    @Test(arguments: faults)
    func findsTheFault(fault: String, name: String) throws {
        let verdict = try Self.verdict(fault: fault, of: name)
        guard case .failed(let reasons) = verdict else {
            Issue.record("\(name) is \(verdict)")
            return
        }
        #expect(reasons.allSatisfy { !$0.isEmpty })
    }

    /// The same plugin without a fault.
    @Test(arguments: Set(faults.map(\.1)).sorted())
    func findsNoFaultWhereNoneIs(name: String) throws {
        let verdict = try Self.verdict(fault: "NONE", of: name)
        #expect(verdict == .passed)
    }

    private static func verdict(fault: String, of name: String) throws -> ConformanceSuite.Verdict {
        let faulty = try CheckedPlugin(fault: fault)
        let suite = ConformanceSuite(
            try ExportedPlugin(path: faulty.path), options: #"{"path":"\#(faulty.directory.path)/main.sqlite"}"#,
            storm: StormProgram(
                path: try BuildProducts.path(of: "crudd-plugin-host"), arguments: ["--storm", faulty.path, "here"]))
        let checks = Check.beforeOpening + Check.ofBackend + Check.ofRecords
        let check = try #require(checks.first { $0.name == name })
        return suite.verdict(check, format: Check.ofRecords.contains { $0.name == name } ? "json" : nil)
    }
}
