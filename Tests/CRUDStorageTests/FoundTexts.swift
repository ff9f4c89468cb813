import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport

@testable import CRUDStorage

/// The result of a read.
enum FoundTexts: Equatable {
    /// `ITEM@REVISION` for each id, nil where there is no record.
    case records([String?])
    case count(Int)
    case partial([String?], lacking: Int)
    case failed(CRUDError.Code)
    /// The batch as a whole.
    case refused(CRUDError.Code)

    init(_ batch: ReadBatch, at position: Int = 0) throws {
        if let failure = batch.failure {
            self = .refused(failure.code)
            return
        }
        switch batch.result(at: position) {
        case .records(let records): self = .records(Self.texts(records, batch))
        case .count(let count): self = .count(count)
        case .partial(let records, let bytes): self = .partial(Self.texts(records, batch), lacking: bytes)
        case .failed(let error): self = .failed(error.code)
        }
    }

    private static func texts(_ records: [StoredRecord?], _ batch: ReadBatch) -> [String?] {
        records.map { record in
            record.map { "\(text($0.item, batch))@\(text($0.revision, batch))" }
        }
    }

    private static func text(_ place: ByteArena.Place, _ batch: ReadBatch) -> String {
        String(decoding: batch.found(place), as: UTF8.self)
    }
}

/// Keeps what a reader finds, as `ITEM@REVISION`.
final class TextVisitor: RecordVisitor {
    private(set) var texts: [String] = []

    func visit(_ record: FoundRecord) -> Bool {
        texts.append(
            "\(String(decoding: record.item, as: UTF8.self))@\(String(decoding: record.revision, as: UTF8.self))")
        return true
    }
}
