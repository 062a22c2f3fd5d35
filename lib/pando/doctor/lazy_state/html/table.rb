# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      module Html
        # Rows of figures as a table.
        #
        # @api private
        module Table
          ESCAPES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;", "'" => "&#39;" }.freeze
          private_constant :ESCAPES

          # @param title [String] @param rows [Array<Hash>] @param columns [Hash{Symbol => String}] with their titles
          # @return [String] HTML; empty without rows
          def self.render(title, rows, columns)
            return "" if rows.empty?

            head = columns.values.map { |name| "<th>#{escape(name)}</th>" }.join
            body = rows.map { |row| "<tr>#{columns.each_key.map { |key| cell(row[key]) }.join}</tr>" }.join
            "<h3>#{escape(title)}</h3><table><thead><tr>#{head}</tr></thead><tbody>#{body}</tbody></table>"
          end

          # @return [String]
          def self.escape(text) = text.to_s.gsub(/[&<>"']/, ESCAPES)

          def self.cell(value)
            return "<td></td>" if value.nil?
            return %(<td class="numbers" align="right">#{grouped(value)}</td>) if value.is_a?(Integer)

            "<td>#{escape(value.is_a?(Array) ? value.join(", ") : value)}</td>"
          end
          private_class_method :cell

          def self.grouped(number) = number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
          private_class_method :grouped
        end
      end
    end
  end
end
