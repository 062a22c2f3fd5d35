# frozen_string_literal: true

require "pando/line_writer"

module Pando
  module Cluster
    # What the log of this process has lost since the process began, for the monitor: it counts the lines, and tells of
    # them if this process ends before its log could say so.
    #
    # Owned by a Role, in its process.
    #
    # @api private
    class LineLosses
      def initialize
        @lost = LineWriter.lost
        @before = LineWriter.due
        @due = 0
      end

      # @yieldparam kind [Symbol] of a report @yieldparam lines [Integer]
      def news
        lost = LineWriter.lost - @lost
        yield :lines_lost, lost if lost.positive?
        @lost += lost
        due = LineWriter.due - @before
        yield :lines_due, due unless due == @due
        @due = due
      end
    end
  end
end
