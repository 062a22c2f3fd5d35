# frozen_string_literal: true

require "json"

module Support
  # A server's event, from a line of what it said with `log_format :json`. It need not stand at the line's beginning: an
  # interpreter that crashes writes its report piece by piece to the same pipe, and what is killed over it leaves
  # half a line. An event is one write(2) with its end of line, so it is whole behind that.
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
