import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

/// Prints page after page of a collection's changes, until the process is ended.
struct ChangeWatching {
    private let client: Client
    private let members: (inout JSONWriter) -> Void
    private let file: CursorFile?
    private var cursor: String

    /// How long the daemon holds back an empty page. Between two pages it is seen whether anybody still reads.
    private static let wait = 5
    /// The shortest and the longest pause between two attempts, in microseconds.
    private static let pauses = UInt32(20_000)...2_000_000

    /// - Parameter members: writes the members of `params`, without the place and the time.
    init(client: Client, cursor: String, file: CursorFile?, _ members: @escaping (inout JSONWriter) -> Void) {
        self.client = client
        self.cursor = cursor
        self.file = file
        self.members = members
    }

    mutating func run() async throws -> Never {
        while true {
            let page = try await page()
            guard let changes = page.elements("changes"), let next = page.string("cursor") else {
                throw CRUDError(.internalError, "the daemon's reply is not a page of changes")
            }
            var lines: [UInt8] = []
            for change in changes {
                // A line end in valid JSON text is insignificant white space, and so is a space in its place.
                lines += change.map { $0 == Self.lineEnd ? UInt8(ascii: " ") : $0 }
                lines.append(Self.lineEnd)
            }
            try StandardOutput.write(lines)
            CorruptRecords.note(page.elements("corrupt") ?? [])
            if next != cursor { try file?.replace(with: next) }
            cursor = next
            StandardOutput.endIfNobodyReads()
        }
    }

    /// The next page, retried while the daemon or the backend is unavailable.
    private func page() async throws -> ResultObject {
        var params = JSONWriter()
        params.object { params in
            members(&params)
            params.member("after", cursor)
            // A `now` that waited and was sent again, after a lost connection, would be a later one.
            if cursor != "now" { params.member("wait", Self.wait) }
        }
        var pause = Self.pauses.lowerBound
        while true {
            do {
                let text = try await client.call(
                    "collection.changes", json: params.bytes, waiting: .seconds(Self.wait))
                guard let page = ResultObject(text) else {
                    throw CRUDError(.internalError, "the daemon's reply is not an object")
                }
                return page
            } catch let error as CRUDError where error.code == .unavailable || error.code == .timedOut {
                if pause == Self.pauses.lowerBound {
                    StandardError.write("crudctl: \(error.message.withVisibleControls); trying again\n")
                }
                // Task.sleep would start threads of libdispatch. Nothing else runs on this thread.
                usleep(.random(in: pause / 2...pause))
                pause = min(2 * pause, Self.pauses.upperBound)
            }
        }
    }

    private static let lineEnd = UInt8(ascii: "\n")
}
