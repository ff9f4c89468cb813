import CRUDModel
import CRUDWire
import Foundation
import Testing

/// `rpc.discover` returns an OpenRPC 1.3 document that describes every method.
@Suite struct OpenRPCDocumentTests {
    private func document() throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(OpenRPCDocument.text)) as? [String: Any])
    }

    /// Two documents, both alive, share their memory: each call replies with the same one.
    @Test func isWrittenOnce() {
        let (first, second) = (OpenRPCDocument.text, OpenRPCDocument.text)
        first.withUnsafeBufferPointer { first in
            second.withUnsafeBufferPointer { second in
                #expect(first.count > 0 && first.baseAddress == second.baseAddress)
            }
        }
    }

    @Test func hasWhatOpenRPCRequires() throws {
        let document = try document()
        #expect((document["openrpc"] as? String)?.hasPrefix("1.3.") == true)
        let info = try #require(document["info"] as? [String: Any])
        #expect(info["title"] is String && info["version"] as? String == CRUDVersion.current)
        let methods = try #require(document["methods"] as? [[String: Any]])
        #expect(methods.map { $0["name"] as? String } == Method.allCases.map(\.name.description))
        for method in methods {
            for parameter in try #require(method["params"] as? [[String: Any]]) {
                #expect(parameter["name"] is String && parameter["schema"] is [String: Any])
            }
            let result = try #require(method["result"] as? [String: Any])
            #expect(result["name"] is String && result["schema"] is [String: Any])
        }
    }

    @Test func everyReferencedErrorExists() throws {
        let document = try document()
        let errors = try #require((document["components"] as? [String: Any])?["errors"] as? [String: [String: Any]])
        for definition in MethodTable.definitions {
            for name in definition.errors {
                #expect(errors[name]?["code"] as? Int == CRUDError.Code.all.first { $0.name == name }?.code.rawValue)
            }
        }
    }
}
