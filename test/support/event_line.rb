# frozen_string_literal: true

require "json"

module Support
  # A server's event, from a line of its output with `log_format :json`. The event may not start at the beginning of the
  # line: an interpreter that crashes writes its report in pieces to the same pipe, and half a line is left if it is
  # killed meanwhile. An event is a single write(2) including the newline, so it is complete after that.
  module EventLine
    BEGINNING = '{"time":"'

    # @param line [String]
    # @return [Hash, nil]
    def self.parse(line)
      from = line.b.rindex(BEGINNING) or return
      event = JSON.parse(line.byteslice(from..).scrub)
      event if event.is_a?(Hash) && event.key?("event")
    rescue JSON::ParserError
      nil
    end
  end
end
