# frozen_string_literal: true

module Pando
  module Compat
    # The comments with which Rails opens config/puma.rb. They are about Puma and its threads alone, and would be wrong
    # in config/pando.rb. One that somebody has added a line to is not known any more, and stays.
    #
    # Used by Translator.
    #
    # @api private
    module StockHeader
      EVALUATED = "# This configuration file will be evaluated by Puma. The top-level methods that"
      MANUAL = "# about methods provided by the DSL, see https://puma.io/puma/Puma/DSL.html."
      POOL = "# threads. This includes Active Record's `pool` parameter in `database.yml`."
      # First line, last line and number of lines of each paragraph, of Rails 7.1 to 8.1.
      PARAGRAPHS = [[EVALUATED, MANUAL, 3], [EVALUATED, POOL, 27],
                    ["# Puma starts a configurable number of processes (workers) and each process", POOL, 18],
                    ["# Puma can serve each request in a thread from an internal thread pool.",
                     "# and maximum; this matches the default thread size of Active Record.", 5]].freeze
      private_constant :EVALUATED, :MANUAL, :POOL, :PARAGRAPHS

      # @param lines [Array<String>] of a whole file
      # @return [Integer] how many of the first ones are such comments, or empty lines behind one
      def self.size(lines)
        size = 0
        while lines[size]&.start_with?("#")
          paragraph = lines.drop(size).take_while { |line| line.start_with?("#") }
          break unless PARAGRAPHS.include?([paragraph.first, paragraph.last, paragraph.size])

          size += paragraph.size
          size += 1 while lines[size]&.empty?
        end
        size
      end
    end
  end
end
