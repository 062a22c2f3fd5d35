# frozen_string_literal: true

module Pando
  module HTTP
    # The Date field, made once a second (RFC 9110 section 6.6.1).
    #
    # @api private
    module DateLine
      @second = nil

      class << self
        # @return [String] "date: Sun, 06 Nov 1994 08:49:37 GMT" and CRLF, frozen
        def current
          second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
          return @line if second == @second

          @line = Time.at(second).utc.strftime("date: %a, %d %b %Y %H:%M:%S GMT\r\n").freeze
          @second = second
          @line
        end
      end
    end
  end
end
