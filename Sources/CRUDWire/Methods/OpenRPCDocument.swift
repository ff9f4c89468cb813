import CRUDJSON
import CRUDModel

/// The result of `rpc.discover`: an OpenRPC 1.3 document (https://spec.open-rpc.org) made from the method table.
package enum OpenRPCDocument {
    /// The document as JSON text, written once.
    package static let text = makeText()

    private static func makeText() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { document in
            document.member("openrpc", "1.3.2")
            document.key("info")
            document.object { info in
                info.member("title", "crudd")
                info.member("version", CRUDVersion.current)
                info.member("description", "CRUD over a Unix socket: each frame is a 4-byte length and JSON-RPC 2.0.")
            }
            document.key("methods")
            document.array { methods in
                for definition in MethodTable.definitions { write(definition, to: &methods) }
            }
            document.key("components")
            document.object { components in
                components.key("errors")
                components.object { errors in
                    for name in Set(MethodTable.definitions.flatMap(\.errors)).sorted() {
                        write(error: name, to: &errors)
                    }
                }
            }
        }
        return writer.bytes
    }

    private static func write(_ definition: MethodDefinition, to methods: inout JSONWriter) {
        methods.object { method in
            method.member("name", definition.name.description)
            method.member("summary", definition.summary)
            method.member("x-access", definition.access.rawValue)
            method.member("paramStructure", "by-name")
            method.key("params")
            method.array { parameters in
                for parameter in definition.required { write(parameter, of: definition, to: &parameters) }
                for parameter in definition.optional { write(parameter, of: definition, to: &parameters) }
            }
            method.key("result")
            method.object { result in
                result.member("name", "result")
                result.key("schema")
                result.raw(definition.result.utf8)
            }
            method.key("errors")
            method.array { errors in
                for name in definition.errors { errors.object { $0.member("$ref", "#/components/errors/\(name)") } }
            }
        }
    }

    private static func write(
        _ parameter: Parameter, of definition: MethodDefinition, to parameters: inout JSONWriter
    ) {
        parameters.object { descriptor in
            descriptor.member("name", parameter.name.description)
            descriptor.member("required", definition.required.contains(parameter))
            descriptor.key("schema")
            descriptor.raw(parameter.schema(in: definition.method).utf8)
        }
    }

    private static func write(error name: String, to errors: inout JSONWriter) {
        guard let code = CRUDError.Code.all.first(where: { $0.name == name })?.code else { return }
        errors.key(name)
        errors.object { error in
            error.member("code", code.rawValue)
            error.member("message", name)
        }
    }
}
