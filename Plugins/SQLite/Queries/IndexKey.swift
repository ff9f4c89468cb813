import CRUDModel
import CRUDPluginKit
import CSQLite

/// A value of an index's second column.
enum IndexKey: Equatable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    /// Above every text.
    case end

    init(_ number: ExactNumber) {
        switch number {
        case .integer(let integer): self = .integer(integer)
        case .binary64(let value): self = .real(value)
        }
    }

    /// What a row has in a column.
    init(_ row: Statement, _ column: Int32) {
        switch sqlite3_column_type(row.handle, column) {
        case SQLITE_INTEGER: self = .integer(row.integer(column))
        case SQLITE_FLOAT: self = .real(sqlite3_column_double(row.handle, column))
        case SQLITE_TEXT: self = .text(Array(row.bytes(column)))
        default: self = .null
        }
    }

    /// Binds it to a parameter; the result code is SQLite's.
    func bind(_ index: Int32, _ statement: Statement) -> Int32 {
        switch self {
        case .null: sqlite3_bind_null(statement.handle, index)
        case .integer(let integer): statement.bind(index, integer: integer)
        case .real(let value): sqlite3_bind_double(statement.handle, index, value)
        case .text(let text): statement.bind(index, copying: text)
        case .end: statement.bind(index, blob: emptyBytes)
        }
    }
}

extension ExactNumber {
    var nearestBinary64: Double {
        switch self {
        case .integer(let integer): Double(integer)
        case .binary64(let value): value
        }
    }
}

extension Double {
    /// By how many neighbours SQLite's conversion of a number's text may be off. Its author promises 15 digits, which are
    /// 8 neighbours; measured with an x87 long double it is 1.
    private static let slack: Int64 = 16

    /// The least value that may stand behind a real of an index.
    var lowered: Double { neighbour(-Self.slack) }
    /// The greatest one.
    var raised: Double { neighbour(Self.slack) }

    /// The binary64 that stands so many places further in their order; ±infinity is the last.
    private func neighbour(_ distance: Int64) -> Double {
        // Bit patterns without their sign are in the order of magnitudes.
        let magnitude = Int64(bitPattern: self.magnitude.bitPattern)
        let place = (sign == .minus ? -magnitude : magnitude) + distance
        let last = Int64(bitPattern: Double.infinity.bitPattern)
        let clamped = min(max(place, -last), last)
        let value = Double(bitPattern: UInt64(clamped.magnitude))
        return clamped < 0 ? -value : value
    }
}
