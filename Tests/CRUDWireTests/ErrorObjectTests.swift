import CRUDJSON
import CRUDModel
import CRUDWire
import Foundation
import Testing

/// The `error` object of a response.
@Suite struct ErrorObjectTests {
    private func object(_ error: CRUDError) throws -> [String: Any] {
        var writer = JSONWriter()
        error.write(to: &writer)
        return try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
    }

    private func data(_ error: CRUDError) throws -> [String: Any] {
        try #require(try object(error)["data"] as? [String: Any])
    }

    @Test func everyCodeHasItsShape() throws {
        for (code, name) in CRUDError.Code.all {
            let object = try object(CRUDError(code, "what happened"))
            #expect(Set(object.keys) == ["code", "message", "data"])
            #expect(object["code"] as? Int == code.rawValue)
            #expect(object["message"] as? String == "what happened")
            let data = try #require(object["data"] as? [String: Any])
            #expect(Set(data.keys) == ["name", "retryable"], "details are there where there are any")
            #expect(data["name"] as? String == name)
            #expect(data["retryable"] as? Bool == code.isRetryable)
        }
    }

    @Test func detailsAreThoseThatTheErrorHas() throws {
        let full = CRUDError.Details(
            member: "m", limit: "l", maximum: 7, revision: "r", index: 0, path: "p", node: #"{"op":"?"}"#, file: "f",
            line: 1, column: 2, deleted: 3)
        let details = try #require(try data(CRUDError(.invalidQuery, "", details: full))["details"] as? NSDictionary)
        #expect(
            details == [
                "member": "m", "limit": "l", "maximum": 7, "revision": "r", "index": 0, "path": "p",
                "node": ["op": "?"], "file": "f", "line": 1, "column": 2, "deleted": 3,
            ])
        let few = try data(CRUDError(.limitExceeded, "", details: .init(limit: "batch", maximum: 1000)))
        #expect(few["details"] as? NSDictionary == ["limit": "batch", "maximum": 1000])
    }

    @Test(arguments: ["", "\"quoted\" \\ and \n\0\u{1F}\u{7F}", "é😀\u{2028}"])
    func anyTextIsWrittenAsJSON(text: String) throws {
        let object = try object(CRUDError(.invalidParams, text, details: .init(member: text)))
        #expect(object["message"] as? String == text)
        #expect(((object["data"] as? [String: Any])?["details"] as? [String: Any])?["member"] as? String == text)
    }

    @Test func itsCauseStaysHere() throws {
        let error = CRUDError(.internalError, "failed", cause: CRUDError(.corrupt, "secret"))
        var writer = JSONWriter()
        error.write(to: &writer)
        #expect(!String(decoding: writer.bytes, as: UTF8.self).contains("secret"))
    }
}
