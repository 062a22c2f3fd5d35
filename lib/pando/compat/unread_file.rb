# frozen_string_literal: true

require "pando/compat/effect"
require "pando/compat/static_value"
require "pando/compat/translator"

module Pando
  module Compat
    # Finds the lines in a Puma config file that was not translated which would change what Pando does. It parses the
    # file and does not run it. It skips lines whose effect Pando has anyway, and branches that are not taken.
    #
    # Notices uses it in a process that ends at once, so that the monitor does not keep the memory that parsing takes.
    #
    # @api private
    class UnreadFile
      # A line's number in the file, its text, and what to do instead.
      Line = Struct.new(:number, :text, :remedy)

      # @param source [String] text of the file
      # @param name [String] of the file
      # @param config [Config] the effective settings
      # @param env [Hash{String => String}]
      # @raise [Source::Unreadable] it is not valid Ruby
      def initialize(source, name, config, env)
        @translator = Translator.new(source, name)
        @rows = @translator.lines
        @values = StaticValue.new(environment(config, env), @translator.values)
        @effect = Effect.new(config, @values)
      end

      # @return [Array<Line>] that Pando does not follow
      def lines
        @found = []
        look(0, @rows.size - 1)
        @found
      end

      private

      # The environment as the application sees it.
      def environment(config, env) = env.to_h.merge("RAILS_ENV" => config.environment, "RACK_ENV" => config.environment)

      def look(from, to)
        Source.pieces(@rows, from, to).each { |piece| code(piece.rows) if piece.kind == :code }
      end

      def code(rows)
        text = @rows[rows].join("\n")
        return branches(rows) if rows.size > 1 && Branches.of?(Source.statements(text).first)

        Source.parts(text).each { |part| judge(part, rows.begin) }
      end

      def judge(text, row)
        statement = Statement.new(text)
        return if statement.name.nil? || !taken?(statement)

        result = @translator.translated(text)
        return if Effect.none?(statement, result) || @effect.had?(statement)

        @found << Line.new(row + 1, text.strip.lines.first.chomp, remedy(result))
      end

      def remedy(result) = result.left_out? ? result.remark : "Write #{result.text.strip.lines.first.chomp}."

      # Whether the statement has no modifier, or one whose condition is true or unknown.
      def taken?(statement)
        return true unless statement.condition

        answer = @values.truth(statement.condition)
        answer.nil? || answer == !statement.modifier.start_with?(" unless")
      end

      def branches(rows)
        heads = Branches.new(@rows[rows]).heads or return judge(@rows[rows].join("\n"), rows.begin)
        heads.each_cons(2) do |head, following|
          answer = answer(@rows[rows][head].join(" "))
          look(rows.begin + head.end + 1, rows.begin + following.begin - 1) unless answer == false
          break if answer
        end
      end

      # @return [Boolean, nil] whether the branch below this head is taken; nil: it cannot be determined
      def answer(head)
        word, condition = head.strip.sub(/\s*(?:\bthen|#.*)\z/, "").split(/\s+|(?=\()/, 2)
        case word
        when "if", "elsif" then @values.truth(condition)
        when "unless" then @values.truth("!#{condition}")
        end
      end
    end
  end
end
