# frozen_string_literal: true

module Support
  # Turns Ruby warnings about lines of this checkout into errors, and drops those about other gems.
  module Warnings
    ROOT = File.expand_path("../..", __dir__)
    OURS = %r{\A#{Regexp.escape(ROOT)}/(?:lib|exe|test|examples)/\S+: warning: }
    OTHERS = %r{\A/\S+:\d+: warning: }

    def warn(message, **)
      raise "Ruby warns: #{message}" if OURS.match?(message)

      super unless OTHERS.match?(message)
    end
  end
end

Warning.extend(Support::Warnings)
$VERBOSE = true
