# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Doctor
    # Writes the table of findings in docs/doctor.md from the kinds themselves:
    #
    #   ruby -Ilib -rpando/doctor/reference -e Pando::Doctor::Reference.write
    #
    # @api private
    module Reference
      PAGE = File.expand_path("../../../docs/doctor.md", __dir__)
      BEGINNING = "<!-- kinds -->\n"
      ENDING = "<!-- end of kinds -->\n"

      module_function

      # @return [String] in Markdown
      def table
        rows = ForkSafety::Finding::KINDS.map do |name, kind|
          "| `#{name}` | #{kind.severity} | #{kind.help} | #{kind.advice} |\n"
        end
        "| kind | severity | what it is | the usual change |\n|---|---|---|---|\n#{rows.join}"
      end

      # @param page [String]
      # @return [String] the page with the current table
      def renew(page)
        page.sub(/#{BEGINNING}.*#{ENDING}/m) { "#{BEGINNING}#{table}#{ENDING}" }
      end

      def write = File.write(PAGE, renew(File.read(PAGE)))
    end
  end
end
