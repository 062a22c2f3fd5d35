# frozen_string_literal: true

module Support
  # Makes a Ruby warning about a line of this checkout an error, and drops those about other people's gems.
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
