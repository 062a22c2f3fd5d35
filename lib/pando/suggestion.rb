# frozen_string_literal: true

module Pando
  # The correct name that is most similar to a wrong one, for error messages.
  #
  #   Suggestion.for("worker", %w[workers listen]) # => " Did you mean workers?"
  #
  # Suggests nothing if Ruby runs without did_you_mean.
  #
  # @api private
  module Suggestion
    module_function

    # @return [String] " Did you mean ...?", or ""
    def for(wrong, names)
      nearest = nearest(wrong, names)
      nearest ? " Did you mean #{nearest}?" : ""
    end

    # @return [String, nil]
    def nearest(wrong, names)
      return unless defined?(DidYouMean::SpellChecker)

      DidYouMean::SpellChecker.new(dictionary: names.map(&:to_s)).correct(wrong.to_s).first
    end
  end
end
