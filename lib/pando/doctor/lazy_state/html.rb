# frozen_string_literal: true

require "pando/doctor/lazy_state/html/private_memory"
require "pando/doctor/lazy_state/html/table"
require "pando/doctor/lazy_state/thresholds"

module Pando
  module Doctor
    module LazyState
      # The figures as a part of an HTML page: tables, and a picture of the memory that requests make private.
      # Self-contained; the classes lazy-state and numbers are for the page's own style sheet.
      module Html
        # What stands above each table, its key in the figures, and its columns.
        TABLES = [
          ["What stays of each request", :requests,
           { request: "Request", objects: "Objects", bytes: "Bytes", code_bytes: "Bytes of code",
             inline_caches: "Inline caches filled", files: "Files loaded", compiled: "Texts compiled" }],
          ["Objects that stay, by line", :lines,
           { place: "Line", allocated: "Allocated at", classes: "Classes", held_by: "Held by", objects: "Objects",
             bytes: "Bytes" }],
          ["Objects that stay, by class", :classes, { class: "Class", objects: "Objects", bytes: "Bytes" }],
          ["Files loaded", :loaded,
           { path: "File", constant: "Constant", place: "Caused at", files: "Files", bytes: "Bytes",
             request: "Request" }],
          ["Text compiled", :compiled,
           { path: "Text", line: "Line", place: "Caused at", bytes: "Bytes", requests: "Requests" }],
          ["Inline caches filled, by file", :inline_caches, { file: "File", cache: "Cache", objects: "Count" }]
        ].freeze
        private_constant :TABLES

        class << self
          # @param figures [Hash{Symbol => Object}] of a {Result}; keys may have become Strings
          # @return [String] a section of HTML
          def render(figures)
            figures = symbolized(figures)
            parts = TABLES.map { |title, key, columns| Table.render(title, figures[key] || [], columns) }
            parts = [PrivateMemory.render(figures[:pages] || []), *parts, calls(figures)]
            %(<section class="lazy-state">#{parts.join}</section>)
          end

          private

          def calls(figures)
            told = figures[:calls] or return ""

            title = "Methods that only the first request calls (#{told[:only_first]} of #{told[:first_request]})"
            Table.render(title, told[:methods] || [], { method: "Method", place: "Line" })
          end

          def symbolized(value)
            case value
            when Hash then value.to_h { |key, one| [KNOWN.fetch(key.to_s, key), symbolized(one)] }
            when Array then value.map { |one| symbolized(one) }
            else value
            end
          end
        end

        KNOWN = (TABLES.flat_map { |_, key, columns| [key, *columns.keys] } + PrivateMemory::KEYS +
                 %i[calls pages methods method only_first first_request]).to_h { |key| [key.name, key] }.freeze
        private_constant :KNOWN
      end
    end
  end
end
