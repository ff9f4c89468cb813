package import CRUDJSON

extension FieldPatch {
    /// The item with the operations applied.
    ///
    /// What they do not change is copied; white space between the members of changed objects and between the elements
    /// of an array with `add` or `remove` is left out.
    ///
    /// - Parameters:
    ///   - item: JSON text.
    ///   - text: that of the operations.
    /// - Throws: `unsupported`, with the path, where a member has another type or a number too many digits; `corrupt`
    ///   for an item that is not valid JSON.
    package mutating func apply(to item: Span<UInt8>, _ text: Span<UInt8>) throws(CRUDError) -> [UInt8] {
        var work = Work()
        return try apply(to: item, text, &work)
    }

    /// As ``apply(to:_:)``; throws ``CRUDError/stopped`` where the work is stopped.
    package mutating func apply(
        to item: Span<UInt8>, _ text: Span<UInt8>, _ work: inout Work
    ) throws(CRUDError) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(item.count + text.count)
        do {
            var scanner = JSONScanner()
            try apply(0, to: &scanner, item, text, &output, &work)
            try scanner.expectEnd(item, &work)
        } catch let error as CRUDError {
            throw work.isStopped ? .stopped : error
        } catch {
            if work.isStopped { throw .stopped }
            throw CRUDError(.corrupt, "the stored item is not valid JSON")
        }
        if work.isStopped { throw .stopped }
        return output
    }

    // MARK: Objects

    /// Appends the item's next value with the operations of an object.
    private mutating func apply(
        _ object: Int, to scanner: inout JSONScanner, _ item: Span<UInt8>, _ text: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws {
        let kind = try scanner.peekKind(item, &work)
        guard kind == .object else {
            _ = try scanner.value(item, &work)
            guard kind == .null else { throw unsupported(objects[object].member, "is \(kind.noun), not an object") }
            return try append(object, text, &output, &work)
        }
        var index = objects[object].first
        while index >= 0 {
            members[index].isFound = false
            index = members[index].next
        }
        var separator = UInt8(ascii: "{")
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst, &work) {
            output.append(separator)
            output.append(item.extracting(key.range))
            output.append(UInt8(ascii: ":"))
            separator = UInt8(ascii: ",")
            guard let index = names.index(of: key, item, in: object, &work) else {
                output.append(item.extracting(try scanner.value(item, &work).range))
                continue
            }
            members[index].isFound = true
            switch members[index].change {
            case .object(let object): try apply(object, to: &scanner, item, text, &output, &work)
            case .operation(let operation, let operand):
                let value = try scanner.value(item, &work)
                try apply(operation, operand, to: value, of: index, item, text, &output, &work)
            }
        }
        try appendMissing(object, text, separator, &output, &work)
    }

    /// Appends an object that the item does not have.
    private mutating func append(
        _ object: Int, _ text: Span<UInt8>, _ output: inout [UInt8], _ work: inout Work
    ) throws {
        var index = objects[object].first
        while index >= 0 {
            members[index].isFound = false
            index = members[index].next
        }
        try appendMissing(object, text, UInt8(ascii: "{"), &output, &work)
    }

    /// Appends the members of an object that were not found in the item, and its end.
    ///
    /// - Parameter separator: `{` where it is still to begin, else a comma.
    private mutating func appendMissing(
        _ object: Int, _ text: Span<UInt8>, _ separator: UInt8, _ output: inout [UInt8], _ work: inout Work
    ) throws {
        var separator = separator
        var index = objects[object].first
        while index >= 0 {
            let member = members[index]
            if !member.isFound {
                output.append(separator)
                output.appendJSONString(nameBytes.span.extracting(member.name))
                output.append(UInt8(ascii: ":"))
                separator = UInt8(ascii: ",")
                switch member.change {
                case .object(let object): try append(object, text, &output, &work)
                case .operation(let operation, let operand):
                    try append(operation, operand, of: index, text, &output, &work)
                }
            }
            index = member.next
        }
        if separator == UInt8(ascii: "{") { output.append(separator) }
        output.append(UInt8(ascii: "}"))
    }

    // MARK: Members

    /// Appends a member that the item does not have, or that is null.
    private func append(
        _ operation: FieldOperation, _ operand: JSONSlice, of member: Int, _ text: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws {
        switch operation {
        case .increment: output += try number(operand, text, of: member, &work).text
        case .minimum, .maximum:
            _ = try number(operand, text, of: member, &work)
            output.append(text.extracting(operand.range))
        case .append: output.append(text.extracting(operand.range))
        case .add:
            var elements = ElementWriter(&output)
            let values = try ValueSet(elementsOf: operand, text, &work)
            for value in values.values { elements.append(value, text, &output) }
            elements.end(&output)
        case .remove: output.append("[]")
        }
    }

    /// Appends what an operation makes of a member's value.
    private func apply(
        _ operation: FieldOperation, _ operand: JSONSlice, to value: JSONSlice, of member: Int,
        _ item: Span<UInt8>, _ text: Span<UInt8>, _ output: inout [UInt8], _ work: inout Work
    ) throws {
        if value.kind == .null { return try append(operation, operand, of: member, text, &output, &work) }
        guard value.kind == (operation.takesNumber ? .number : .array) else {
            throw unsupported(
                member, "is \(value.kind.noun), not \((operation.takesNumber ? JSONKind.number : .array).noun)")
        }
        switch operation {
        case .increment, .minimum, .maximum:
            let old = try number(value, item, of: member, &work)
            let new = try number(operand, text, of: member, &work)
            guard operation != .increment else {
                guard let sum = old.adding(new) else { throw tooManyDigits(member) }
                output += sum.text
                return
            }
            let isReplaced = operation == .minimum ? new.isLess(than: old) : old.isLess(than: new)
            output.append(isReplaced ? text.extracting(operand.range) : item.extracting(value.range))
        case .append: try join(value, operand, item, text, &output, &work)
        case .add: try add(operand, to: value, item, text, &output, &work)
        case .remove: try remove(operand, from: value, item, text, &output, &work)
        }
    }

    private func number(
        _ slice: JSONSlice, _ text: Span<UInt8>, of member: Int, _ work: inout Work
    ) throws(CRUDError) -> DecimalNumber {
        guard let number = DecimalNumber(slice, text, &work) else { throw tooManyDigits(member) }
        return number
    }

    // MARK: Arrays

    /// Appends the elements of both arrays.
    private func join(
        _ value: JSONSlice, _ operand: JSONSlice, _ item: Span<UInt8>, _ text: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws {
        output.append(UInt8(ascii: "["))
        output.append(item.extracting(value.content))
        if try !isEmpty(value, item, &work), try !isEmpty(operand, text, &work) { output.append(UInt8(ascii: ",")) }
        output.append(text.extracting(operand.content))
        output.append(UInt8(ascii: "]"))
    }

    private func isEmpty(
        _ array: JSONSlice, _ text: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> Bool {
        var scanner = JSONScanner(at: array.start)
        scanner.enter()
        var isFirst = true
        return try !scanner.nextElement(text, isFirst: &isFirst, &work)
    }

    /// Appends the elements of an array, and those of the other that equal none of them.
    private func add(
        _ operand: JSONSlice, to value: JSONSlice, _ item: Span<UInt8>, _ text: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws {
        var added = try ValueSet(elementsOf: operand, text, &work)
        var isThere = [Bool](repeating: false, count: added.values.count)
        var elements = ElementWriter(&output)
        var scanner = JSONScanner(at: value.start)
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(item, isFirst: &isFirst, &work) {
            let element = try scanner.value(item, &work)
            if let index = try added.index(of: element, item, &work) { isThere[index] = true }
            elements.append(element, item, &output)
        }
        for (index, value) in added.values.enumerated() where !isThere[index] { elements.append(value, text, &output) }
        elements.end(&output)
    }

    /// Appends the elements of an array that equal none of the other's.
    private func remove(
        _ operand: JSONSlice, from value: JSONSlice, _ item: Span<UInt8>, _ text: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws {
        var removed = try ValueSet(elementsOf: operand, text, &work)
        var elements = ElementWriter(&output)
        var scanner = JSONScanner(at: value.start)
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(item, isFirst: &isFirst, &work) {
            let element = try scanner.value(item, &work)
            if try removed.index(of: element, item, &work) == nil { elements.append(element, item, &output) }
        }
        elements.end(&output)
    }

    // MARK: Errors

    private func tooManyDigits(_ member: Int) -> CRUDError {
        unsupported(member, "would need a number with more than \(DecimalNumber.maximumDigits) digits")
    }

    /// - Parameters:
    ///   - member: −1: the item itself.
    ///   - reason: the end of a sentence that begins with the member.
    private func unsupported(_ member: Int, _ reason: String) -> CRUDError {
        let path = path(of: member)
        let subject = member < 0 ? "the item" : "member \(quoted(path))"
        return CRUDError(
            .unsupported, "\(subject) \(reason)", details: .init(path: String(decoding: path, as: UTF8.self)))
    }

    /// The path of a member as `details.path` has it.
    private func path(of member: Int) -> [UInt8] {
        var names: [Range<Int>] = []
        var member = member
        while member >= 0 {
            names.append(members[member].name)
            member = objects[members[member].object].member
        }
        var path: [UInt8] = []
        for (position, name) in names.reversed().enumerated() {
            if position > 0 { path.append(UInt8(ascii: ".")) }
            for byte in nameBytes[name] {
                if [UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "[")].contains(byte) {
                    path.append(UInt8(ascii: "\\"))
                }
                path.append(byte)
            }
        }
        return path
    }
}

/// Writes an array, element by element.
private struct ElementWriter {
    private var isFirst = true

    init(_ output: inout [UInt8]) {
        output.append(UInt8(ascii: "["))
    }

    mutating func append(_ element: JSONSlice, _ text: Span<UInt8>, _ output: inout [UInt8]) {
        if !isFirst { output.append(UInt8(ascii: ",")) }
        isFirst = false
        output.append(text.extracting(element.range))
    }

    func end(_ output: inout [UInt8]) {
        output.append(UInt8(ascii: "]"))
    }
}

extension JSONKind {
    fileprivate var noun: String {
        switch self {
        case .null: "null"
        case .true, .false: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
