import CRUDJSON
import CRUDModel

/// The first pass over a dump, which writes nothing.
struct DumpCheck {
    /// How many records the dump has.
    private(set) var records = 0

    /// After how many records the progress is shown, at most.
    private static let progressInterval = 1000

    /// - Parameter isSingle: whether the dump may have one collection only.
    init(
        _ input: DumpInput, _ limits: DaemonLimits, isSingle: Bool,
        progress: (_ records: Int, _ fraction: Double) -> Void
    ) throws {
        var reader = DumpReader(input, maximumLineBytes: limits.frameBytes)
        var collections = 0
        while let entry = try reader.next() {
            switch entry {
            case .collection:
                collections += 1
                if isSingle, collections > 1 {
                    throw CRUDError(.invalidParams, "--into needs a dump of one collection").inLine(reader.line)
                }
            case .record(let record):
                do throws(CRUDError) { try limits.check(record.item) } catch { throw error.inLine(reader.line) }
                records += 1
                if records % Self.progressInterval == 0 {
                    progress(records, Double(reader.offset) / Double(input.size))
                }
            }
        }
    }
}

extension CRUDError {
    /// This error, with another fact about it.
    func with(_ fact: String) -> CRUDError {
        var error = self
        error.message += "; \(fact)"
        return error
    }
}
