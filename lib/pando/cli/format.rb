# frozen_string_literal: true

require "pando/cli/command"

module Pando
  module CLI
    # `--format` and `--output`, for the commands that have several output formats.
    #
    # @api private
    module Format
      TEXT_OR_JSON = Command::Switch.new(name: :format, flags: %w[--format], argument: "text|json",
                                         help: "With `config`, `status`, `events`, `slow` and `history`: the output " \
                                               "format. [text]").freeze

      REPORT = Command::Switch.new(name: :format, flags: %w[--format], argument: "text|json|html",
                                   help: "With `doctor`, `pages` and `measure`: the report's format. [text]").freeze
      OUTPUT = Command::Switch.new(name: :output, flags: %w[--output], argument: "FILE",
                                   help: "With `doctor`, `pages` and `measure`: write the report to this " \
                                         "file instead of stdout.").freeze

      private

      # @param known [Array<String>] the first one is the default
      # @return [String] one of them
      # @raise [UsageError]
      def chosen_format(known = %w[text json])
        wanted = flags[:format] || known.first
        return wanted if known.include?(wanted)

        raise UsageError, "--format: must be #{[known[0..-2].join(", "), known.last].join(" or ")}, " \
                          "but is #{wanted.inspect}."
      end

      # @raise [UsageError]
      def write_report(text)
        flags[:output] ? File.write(flags[:output], text) : terminal.out.write(text)
      rescue SystemCallError => e
        raise UsageError, "--output: #{e.message}"
      end
    end
  end
end
