# frozen_string_literal: true

require "pando/cluster/message"

module Pando
  module Cluster
    # Where the threads of this process stand, in reports to the monitor. Runs in a signal handler, so it takes no lock.
    module Stacks
      # Bytes of all together, and of a line.
      LIMIT = 24_000
      LINE = 400
      # Bytes that a stack may have, however many there are, and of a note on what was left out. All threads that a
      # worker may have for requests fit.
      LEAST = 300
      NOTE = 60
      HANDLER = [__FILE__, File.join(File.dirname(__FILE__), "role.rb")].freeze
      private_constant :HANDLER

      class << self
        # @param threads [Array<Thread>]
        # @return [Array<String>] texts for reports, the last one empty
        def reports(threads = Thread.list)
          parts = [+""]
          fitted(stacks(threads)).flatten.each do |line|
            parts << +"" if parts.last.bytesize + line.bytesize > Message::TEXT_BYTES
            parts.last << line
          end
          [*parts, ""]
        end

        private

        # The lines of each stack. The main thread comes first, because most workers serve with it, and the shortest
        # stacks last, because they are those of idle threads. These also stand at the same place, and share a stack.
        def stacks(threads)
          groups = threads.group_by { |thread| [thread == Thread.main, frames(thread)] }
          groups = groups.sort_by { |(main, frames), _| [main ? 0 : 1, -frames.size] }
          groups.map do |(_, frames), same|
            [title(same), *frames.map { |frame| "    #{frame}" }].map { |line| "#{line.b[0, LINE - 1]}\n" }
          end
        end

        # Without the frames of the signal handler, which are of this file and of the role's.
        def frames(thread)
          frames = thread.backtrace.to_a
          thread == Thread.current ? frames.drop_while { |frame| frame.start_with?(*HANDLER) } : frames
        end

        def title(threads)
          first = threads.first
          return "main thread:" if first == Thread.main

          more = " and #{threads.size - 1} more with the same stack" if threads.size > 1
          "#{["thread", first.name&.inspect, "(#{first.status || "dead"})"].compact.join(" ")}#{more}:"
        end

        def fitted(stacks)
          share = share(stacks.map { |lines| bytes(lines) })
          left = LIMIT
          cut = stacks.map { |lines| cut(lines, share) }.take_while { |lines| (left -= bytes(lines)) >= 0 }
          missing = stacks.size - cut.size
          missing.zero? ? cut : [*cut, ["#{missing} more stacks were left out\n"]]
        end

        # What short stacks leave is for the long ones.
        # @return [Integer] bytes of a long one
        def share(sizes)
          left = LIMIT
          sizes.sort.each.with_index do |size, place|
            share = left / (sizes.size - place)
            return [share, LEAST].max if size > share

            left -= size
          end
          LIMIT
        end

        # Leaves out frames in the middle: a stack is known by its title and both ends.
        def cut(lines, share)
          return lines if bytes(lines) <= share

          half = (share - NOTE) / 2
          head = first(lines, half)
          tail = first(lines.reverse, half).reverse
          [*head, "    ... #{lines.size - head.size - tail.size} frames left out ...\n", *tail]
        end

        def first(lines, bytes) = lines.take_while { |line| (bytes -= line.bytesize) >= 0 }
        def bytes(lines) = lines.sum(&:bytesize)
      end
    end
  end
end
