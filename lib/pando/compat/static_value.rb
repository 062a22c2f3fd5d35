# frozen_string_literal: true

require "pando/compat/solid_queue"

module Pando
  module Compat
    # The value of an expression of another server's config file, if it can be determined without running the file: a
    # literal, an environment variable with or without a default, or a local variable that is set to one of these. All
    # values are text.
    #
    # UnreadFile uses it.
    #
    # @api private
    class StaticValue
      # The value cannot be determined.
      UNKNOWN = Object.new.freeze

      LITERAL = /\A(?:(\d+)|:(\w+)|(["'])([^"'\\#]*)\3)\z/
      FETCH = /\AENV\.fetch\(\s*["'](\w+)["']\s*(?:,\s*(.+?)\s*)?\)\s*(?:\{\s*(.*?)\s*\}|do\s+(.*?)\s+end)?\z/m
      ASKED = /\AENV\[\s*["'](\w+)["']\s*\]\z/
      # Allows at most one nested pair.
      BRACKETS = /\(([^()]*(?:\([^()]*\)[^()]*)*)\)/
      WRAPPED = /\A(?:(?:Integer)?#{BRACKETS}|(.*)\.to_[is])\z/m
      TEXT = /\A"[^"\\]*\#\{/
      EITHER = /\A(.+?)\s*\|\|\s*(.+)\z/m
      COMPARED = /\A(.+?)\s*(==|!=|>=?|<=?)\s*(.+)\z/m
      LISTED = /\A%w\[([^\]]*)\]\.include\?\((.*)\)\z/m
      # Limits the recursion, because variables may refer to each other.
      DEEPEST = 20
      private_constant :LITERAL, :FETCH, :ASKED, :BRACKETS, :WRAPPED, :TEXT, :EITHER, :COMPARED, :LISTED, :DEEPEST

      # @param env [Hash{String => String}]
      # @param variables [Hash{String => String}] the source text that is assigned to each local variable
      def initialize(env, variables)
        @env = env
        @variables = variables
      end

      # @param text [String] an expression
      # @return [String, nil, UNKNOWN] nil: it has no value
      def of(text, depth = 0)
        return UNKNOWN if depth > DEEPEST

        text = text.strip
        case text
        when "nil", "false" then nil
        when LITERAL then Regexp.last_match.captures.values_at(0, 1, 3).compact.first
        when ASKED then @env[Regexp.last_match(1)]
        when FETCH then fetched(Regexp.last_match, depth)
        when WRAPPED then of(Regexp.last_match.captures.compact.first, depth + 1)
        when EITHER then either(*Regexp.last_match.captures, depth)
        when TEXT then interpolated(text, depth)
        else variable(text, depth)
        end
      end

      # @return [Boolean] whether SOLID_QUEUE_IN_PUMA asks for jobs
      def wants_jobs? = SolidQueue.wanted?(@env)

      # @param condition [String] an expression
      # @return [Boolean, nil] nil: it cannot be determined
      def truth(condition)
        text = condition.strip.sub(/\A\((.*)\)\z/m, "\\1")
        return wants_jobs? if text.include?(SolidQueue::VARIABLE)
        return opposite(truth(Regexp.last_match(1))) if text =~ /\A!\s*([^=].*)\z/m
        return listed(*Regexp.last_match.captures) if text =~ LISTED
        return compared(*Regexp.last_match.captures) if text =~ COMPARED

        value = of(text)
        value.equal?(UNKNOWN) ? nil : !value.nil?
      end

      # @param text [String] an expression
      # @return [Boolean] whether its value comes from one of these environment variables
      def from?(text, names, depth = 0)
        return false if depth > DEEPEST
        return true if names.any? { |name| text.match?(/["']#{name}["']/) }

        text.scan(/\b[a-z_]\w*\b/).uniq.any? { |name| @variables[name] && from?(@variables[name], names, depth + 1) }
      end

      private

      def fetched(match, depth)
        name, *defaults = match.captures
        default = defaults.compact.first
        @env.fetch(name) { default ? of(default, depth + 1) : UNKNOWN }
      end

      def either(first, second, depth)
        value = of(first, depth + 1)
        value.nil? ? of(second, depth + 1) : value
      end

      def interpolated(text, depth)
        parts = text[1...-1].gsub(/\#\{([^{}]*)\}/) do
          value = of(Regexp.last_match(1), depth + 1)
          return UNKNOWN if value.equal?(UNKNOWN)

          value.to_s
        end
        parts.include?("\#{") ? UNKNOWN : parts
      end

      def variable(text, depth)
        @variables.key?(text) ? of(@variables[text], depth + 1) : UNKNOWN
      end

      def listed(words, text)
        value = of(text)
        value.equal?(UNKNOWN) ? nil : words.split.include?(value)
      end

      def compared(one, operator, other)
        values = [of(one), of(other)]
        return if values.any? { |value| value.equal?(UNKNOWN) }
        return (values.uniq.size == 1) == (operator == "==") if %w[== !=].include?(operator)

        values.map(&:to_i).reduce(operator.to_sym)
      end

      def opposite(answer) = answer.nil? ? nil : !answer
    end
  end
end
