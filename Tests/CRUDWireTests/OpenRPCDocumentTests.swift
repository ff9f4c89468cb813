import CRUDModel
import CRUDWire
import Foundation
import Testing

/// `rpc.discover` returns an OpenRPC 1.3 document that describes every method.
@Suite struct OpenRPCDocumentTests {
    private func document() throws -> [String: Any] {
        let text = OpenRPCDocument.text(version: "1.2.3")
        return try #require(try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any])
    }

    @Test func hasWhatOpenRPCRequires() throws {
        let document = try document()
        #expect((document["openrpc"] as? String)?.hasPrefix("1.3.") == true)
        let info = try #require(document["info"] as? [String: Any])
        #expect(info["title"] is String && info["version"] as? String == "1.2.3")
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
