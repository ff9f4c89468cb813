import CRUDModel
import Testing

import struct CRUDTestSupport.JSON
import struct CRUDTestSupport.SeededGenerator

/// Random operations on random items, compared with a simple model of them.
@Suite struct RandomFieldPatchTests {
    /// A JSON value as a tree. Numbers count thousandths.
    private indirect enum Value: Equatable {
        case null
        case number(Int)
        case string(String)
        case array([Value])
        case object([String: Value])

        init(_ json: JSON) {
            switch json.content {
            case .null, .boolean: self = .null
            case .number: self = .number(Self.thousandths(json.text))
            case .string(let text): self = .string(text)
            case .array(let elements): self = .array(elements.map(Value.init))
            case .object(let members):
                self = .object(Dictionary(members.map { ($0.name, Value($0.value)) }) { $1 })
            }
        }

        private static func thousandths(_ text: String) -> Int {
            if text.hasSuffix("e-3") { return Int(text.dropLast(3)) ?? 0 }
            let parts = text.split(separator: ".")
            let fraction = parts.count > 1 ? (parts[1] + "000").prefix(3) : "000"
            let number = (Int(parts[0].filter(\.isNumber)) ?? 0) * 1000 + (Int(fraction) ?? 0)
            return text.hasPrefix("-") ? -number : number
        }

        /// Its text; numbers in one of several spellings.
        func text(_ random: inout SeededGenerator) -> String {
            switch self {
            case .null: return "null"
            case .number(let number):
                let fraction = String(1000 + abs(number) % 1000).dropFirst()
                let plain = "\(number < 0 ? "-" : "")\(abs(number) / 1000).\(fraction)"
                return Bool.random(using: &random) ? plain : "\(number)e-3"
            case .string(let text): return Bool.random(using: &random) ? JSON.quote(text) : Self.escaped(text)
            case .array(let elements):
                var texts: [String] = []
                for element in elements { texts.append(element.text(&random)) }
                return "[" + texts.joined(separator: ", ") + "]"
            case .object(let members):
                var texts: [String] = []
                for (name, value) in members.shuffled(using: &random) {
                    texts.append("\(JSON.quote(name)):\(value.text(&random))")
                }
                return "{" + texts.joined(separator: ",") + "}"
            }
        }

        private static func escaped(_ text: String) -> String {
            "\"" + text.utf8.map { "\\u00" + String($0, radix: 16) }.joined() + "\""
        }
    }

    private struct Operation {
        var kind: FieldOperation
        var path: [String]
        var operand: Value
    }

    private struct Unsupported: Error {
        var path: String
    }

    // MARK: The model

    /// What an operation makes of a value; nil: there is none.
    private func apply(_ operation: Operation, _ path: ArraySlice<String>, to value: Value?) throws -> Value {
        let here = operation.path.dropLast(path.count).joined(separator: ".")
        if let name = path.first {
            var members: [String: Value] = [:]
            switch value {
            case .object(let object): members = object
            case .null, nil: break
            default: throw Unsupported(path: here)
            }
            members[name] = try apply(operation, path.dropFirst(), to: members[name])
            return .object(members)
        }
        switch operation.operand {
        case .number(let operand):
            guard value != nil, value != .null else { return operation.operand }
            guard case .number(let number) = value else { throw Unsupported(path: here) }
            switch operation.kind {
            case .increment: return .number(number + operand)
            case .minimum: return .number(min(number, operand))
            default: return .number(max(number, operand))
            }
        case .array(let operands):
            var elements: [Value] = []
            switch value {
            case .array(let array): elements = array
            case .null, nil: break
            default: throw Unsupported(path: here)
            }
            switch operation.kind {
            case .append: elements += operands
            case .add: for operand in operands where !elements.contains(operand) { elements.append(operand) }
            default: elements.removeAll { operands.contains($0) }
            }
            return .array(elements)
        default: throw Unsupported(path: here)
        }
    }

    // MARK: Random values

    private static let names = ["a", "b", "c"]

    private func value(_ depth: Int, _ random: inout SeededGenerator) -> Value {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 3), using: &random) {
        case 0: return .null
        case 1: return .number(Int.random(in: -2000...2000, using: &random))
        case 2: return .string(["", "x", "ab"].randomElement(using: &random) ?? "")
        case 3, 4: return .array(values(depth - 1, &random))
        default: return object(depth, &random)
        }
    }

    private func values(_ depth: Int, _ random: inout SeededGenerator) -> [Value] {
        (0..<Int.random(in: 0...4, using: &random)).map { _ in
            Bool.random(using: &random)
                ? .number(1000 * Int.random(in: 0...2, using: &random)) : value(depth, &random)
        }
    }

    private func object(_ depth: Int, _ random: inout SeededGenerator) -> Value {
        var members: [String: Value] = [:]
        for name in Self.names where Bool.random(using: &random) { members[name] = value(depth - 1, &random) }
        return .object(members)
    }

    private func operations(_ random: inout SeededGenerator) -> [Operation] {
        (0..<Int.random(in: 1...3, using: &random)).map { _ in
            let kind = FieldOperation.allCases.randomElement(using: &random) ?? .increment
            let path = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                Self.names.randomElement(using: &random) ?? ""
            }
            let number = Int.random(in: -2000...2000, using: &random)
            return Operation(
                kind: kind, path: path, operand: kind.takesNumber ? .number(number) : .array(values(2, &random)))
        }
    }

    private func text(_ operations: [Operation], _ random: inout SeededGenerator) -> String {
        var members: [String] = []
        for kind in FieldOperation.allCases {
            var fields: [String] = []
            for operation in operations where operation.kind == kind {
                fields.append("\"\(operation.path.joined(separator: "."))\":\(operation.operand.text(&random))")
            }
            if !fields.isEmpty { members.append("\"\(kind.name)\":{\(fields.joined(separator: ","))}") }
        }
        return "{" + members.joined(separator: ",") + "}"
    }

    /// Whether one of two paths is the other's beginning.
    private func overlap(_ operations: [Operation]) -> Bool {
        operations.indices.contains { first in
            operations.indices.contains { second in
                first != second && operations[second].path.starts(with: operations[first].path)
            }
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func doesWhatTheModelDoes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var applied = 0
        for _ in 0..<2000 {
            let item = object(3, &random)
            let operations = operations(&random)
            let (itemText, text) = (item.text(&random), text(operations, &random))
            do throws(CRUDError) {
                let result = try FieldPatch.apply(text, to: itemText)
                #expect(!overlap(operations), "\(text)")
                let expected = try? operations.reduce(item) { try apply($1, $1.path[...], to: $0) }
                let found = try? Value(JSON(parsing: result))
                #expect(found == expected, "\(text) of \(itemText) is \(result)")
                applied += 1
            } catch {
                if error.code == .invalidParams {
                    #expect(overlap(operations), "\(text): \(error)")
                    continue
                }
                #expect(error.code == .unsupported)
                let paths = operations.compactMap { operation -> String? in
                    do { _ = try apply(operation, operation.path[...], to: item) } catch let error as Unsupported {
                        return error.path
                    } catch { return nil }
                    return nil
                }
                #expect(paths.contains(error.details.path ?? "none"), "\(text) of \(itemText): \(error)")
            }
        }
        #expect(applied > 400)
    }
}
