# frozen_string_literal: true

require "pando/cluster/open_files"
require "pando/cluster/protocol"
require "pando/cluster/upgrade/document"
require "pando/version"

module Pando
  module Cluster
    class Upgrade
      # What a monitor knows that cannot be found out again, on its way from one image of it to the next.
      #
      # To carry over one more fact, add it to the `serialize` line of the class that owns it (see Serializable). A new
      # owner is added to OWNERS under the name that Monitor has for it. It answers `to_state(state)` and
      # `from_state(state)`: the former adds records (`state.add`) and names the descriptors that are kept
      # (`state.keep(io)`), the latter reads them (`state.any`, `state.take(number)`). A fact is optional: a state that
      # an older Pando wrote does not have it.
      #
      # Times are of the monotonic clock, which goes on.
      class State
        extend Forwardable

        # Owners in the order in which they are restored: those that refer to another come after it.
        OWNERS = %i[tally listeners roster lanes pools reactors drain reload restart_file reaper systemd control admin
                    quiet payload].freeze

        def self.of(monitor, image)
          new.tap do |state|
            state.add("monitor", version: Pando::VERSION, protocol: PROTOCOL, pid: Process.pid,
                                 began_at: monitor.began_at, upgraded_at: Sys.now,
                                 open_files: OpenFiles.given)
            image.to_state(state)
            OWNERS.each { |name| monitor.public_send(name).to_state(state) }
          end
        end

        # @return [State] that is of this Pando's format and protocol
        def self.read(io, descriptors)
          document = Document.parse(io.pread([io.stat.size, Document::LIMIT + 1].min, 0))
          head = document.one("monitor")
          unless (protocol = head.integer(:protocol)) == PROTOCOL
            raise Unreadable, "the running processes speak protocol #{protocol}, and Pando #{Pando::VERSION} speaks " \
                              "#{PROTOCOL}: stop and start the server instead"
          end
          descriptors.expect(document.one("descriptors").integers(:numbers))
          new(document, descriptors)
        rescue SystemCallError, IOError => e
          raise Unreadable, e.message
        end

        def initialize(document = Document.new, descriptors = nil)
          @document = document
          @descriptors = descriptors
          @kept = []
        end

        # @return [Roster] once it has been restored: others refer to its children by their seats
        attr_accessor :roster
        # @return [Array<Integer>] descriptors that are to be passed on
        attr_reader :kept

        def_delegators :@document, :add, :one, :any, :all
        # #take gives a descriptor to its owner, or a stand-in; #close_rest closes those that no owner has taken.
        def_delegators :@descriptors, :take, :close_rest

        # @return [Integer, nil] its number, which it will have in the next image too
        def keep(io)
          return unless io

          io.fileno.tap { |number| @kept << number }
        end

        def to_s
          add("descriptors", numbers: @kept) unless @sealed
          @sealed = true
          @document.to_s
        end

        def part(pool) = PoolState.new(self, pool)

        def part_of(name) = names_of_pools.index(name)&.then { |number| part(number) }

        # Called before anything is restored.
        # @param names [Array<String>] of the pools of the new configuration
        # @raise [Unreadable] a pool with processes is missing
        def meet(names)
          @names = names
          lost = names_of_pools - names
          return if lost.empty? && names_of_pools.first == names.first

          raise Unreadable, "the server has #{names_of_pools.join(", ")}, and the configuration #{names.join(", ")}: " \
                            "an upgrade cannot remove a pool, stop and start the server instead"
        end

        # @param pool [Integer] as it was written
        # @return [Integer] its place now
        def place(pool)
          return pool unless @names

          name = names_of_pools[pool] or raise Unreadable, "a child has pool #{pool}"
          @names.index(name)
        end

        # Memory that the processes share, by which a reader sees whether it has the layout that it expects.
        def memories
          [one("scoreboard").integer(:descriptor), *any("channel")&.integers(:descriptors)]
        end

        # Of the Pando that wrote it.
        def version = one("monitor").text(:version)
        def pid = one("monitor").integer(:pid)
        def began_at = one("monitor").number(:began_at)
        def open_files = one("monitor").read(:open_files, :integer)
        def upgraded_at = one("monitor").number(:upgraded_at)

        private

        def names_of_pools = @names_of_pools ||= all("pool").map { |record| record.text(:name) }
      end

      # What a state says of one pool. The records of the first pool look as they do where there is no other.
      class PoolState
        extend Forwardable

        def_delegators :@state, :roster, :keep, :take

        def initialize(state, pool)
          @state = state
          @pool = pool
        end

        def add(word, **fields) = @state.add(word, **fields, pool: (@pool if @pool.positive?))
        def all(word) = @state.all(word).select { |record| (record.read(:pool, :integer) || 0) == @pool }
        def any(word) = all(word).first
        def one(word) = any(word) || raise(Unreadable, "it has no record #{word}")
      end

      # The descriptors that an image of the monitor has left to this one: open under the numbers in its state,
      # without close-on-exec.
      class Descriptors
        # @raise [SystemCallError] one is not open
        def self.close_on_exec(numbers, value)
          numbers.each { |number| Sys.borrow(number) { |io| io.close_on_exec = value } }
        end

        def expect(numbers)
          @left = numbers.dup
        end

        def take(number)
          raise Unreadable, "descriptor #{number} was not passed on, or is taken twice" unless @left.delete(number)

          Descriptors.close_on_exec([number], true)
          number
        rescue SystemCallError => e
          raise Unreadable, "descriptor #{number}: #{e.message}"
        end

        def close_rest
          @left.each { |number| Sys.close_fd(number) }
        end
      end

      # As Descriptors, in the process that only tries whether it could take over (Rehearsal): a few are real, the
      # others are sockets of its own that nothing writes to.
      class StandIns < Descriptors
        # @return [Hash{Integer => Integer}] number there => number here
        attr_reader :real

        def initialize
          super
          @real = {}
          @dummy, @other_end = UNIXSocket.pair
        end

        def take(number)
          raise Unreadable, "descriptor #{number} is named twice" unless @left.delete(number)

          @real.fetch(number) { Sys.disown(@dummy.dup) }
        end

        def close_rest; end
      end
    end
  end
end
