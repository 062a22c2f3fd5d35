# frozen_string_literal: true

require "pando/cluster/protocol"
require "pando/cluster/upgrade/descriptors"
require "pando/cluster/upgrade/document"
require "pando/cluster/upgrade/pool_state"
require "pando/version"

module Pando
  module Cluster
    class Upgrade
      # What a monitor knows that cannot be found out again, on its way from one image of it to the next.
      #
      # To have one more fact carried over: add it to the `serialize` line of the class that owns it (see Serializable).
      # An owner that has none yet is added to OWNERS under the name that Monitor has for it, and answers
      # `to_state(state)` and `from_state(state)`: the former adds records (`state.add`) and names the
      # descriptors that are kept (`state.keep(io)`), the latter reads them (`state.any`, `state.take(number)`).
      # A fact is optional: a state that an older Pando wrote does not have it.
      #
      # Times are of the monotonic clock, which goes on.
      #
      # @api private
      class State
        # Bytes of what is read.
        LIMIT = Document::LIMIT
        # In the order in which they are taken up: what refers to another comes after it.
        OWNERS = %i[tally listeners roster lanes pools reactors drain reload reaper systemd control quiet].freeze

        # @param monitor [Monitor]
        # @param image [ProcessImage] that the monitor runs, to go back to
        # @return [State]
        def self.of(monitor, image)
          new.tap do |state|
            state.add("monitor", version: Pando::VERSION, protocol: PROTOCOL, pid: Process.pid,
                                 began_at: monitor.began_at, upgraded_at: Sys.now)
            image.to_state(state)
            OWNERS.each { |name| monitor.public_send(name).to_state(state) }
          end
        end

        # @param io [IO] a sealed file
        # @param descriptors [Descriptors, StandIns]
        # @return [State] that is of this Pando's format and protocol
        # @raise [Unreadable]
        def self.read(io, descriptors)
          document = Document.parse(io.pread([io.stat.size, LIMIT + 1].min, 0))
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

        # @return [Roster] once it has been taken up: others refer to its children by their seats
        attr_accessor :roster
        # @return [Array<Integer>] descriptors that are to be passed on
        attr_reader :kept

        def add(word, **fields) = @document.add(word, **fields)

        # @param io [#fileno, nil]
        # @return [Integer, nil] its number, which it will have in the next image too
        def keep(io)
          return unless io

          io.fileno.tap { |number| @kept << number }
        end

        # @return [String]
        def to_s
          add("descriptors", numbers: @kept) unless @sealed
          @sealed = true
          @document.to_s
        end

        def one(word) = @document.one(word)
        def any(word) = @document.any(word)
        def all(word) = @document.all(word)

        # @return [Integer] of a descriptor that this process owns from now on, or of one that stands for it
        # @raise [Unreadable]
        def take(number) = @descriptors.take(number)

        # @param pool [Integer] its place among the pools of whoever wrote this
        # @return [PoolState]
        def part(pool) = PoolState.new(self, pool)

        # @param name [String]
        # @return [PoolState, nil] nil: there is no such pool yet
        def part_of(name) = names_of_pools.index(name)&.then { |number| part(number) }

        # Before anything is taken up.
        # @param names [Array<String>] of the pools that there are to be
        # @raise [Unreadable] the processes of one would be nobody's
        def meet(names)
          @names = names
          lost = names_of_pools - names
          return if lost.empty? && names_of_pools.first == names.first

          raise Unreadable, "the server has #{names_of_pools.join(", ")}, and is to have #{names.join(", ")}: what " \
                            "there is cannot go by an upgrade, stop and start the server instead"
        end

        # @param pool [Integer] as it was written
        # @return [Integer] its place now
        def place(pool)
          return pool unless @names

          name = names_of_pools[pool] or raise Unreadable, "a child has pool #{pool}"
          @names.index(name)
        end

        # Memory that the processes share, by which a reader sees whether it has the layout that it expects.
        # @return [Array<Integer>] descriptors
        def memories
          [one("scoreboard").integer(:descriptor), *any("channel")&.integers(:descriptors)]
        end

        # Those that nobody has taken are nobody's.
        def close_rest = @descriptors.close_rest

        # @return [String] of the Pando that wrote it
        def version = one("monitor").text(:version)

        # @return [Integer] of the monitor whose it is
        def pid = one("monitor").integer(:pid)

        def began_at = one("monitor").number(:began_at)
        def upgraded_at = one("monitor").number(:upgraded_at)

        private

        # A Pando from before there were pools had one, and did not name it.
        def names_of_pools
          return @names_of_pools if @names_of_pools

          names = all("pool").map { |record| record.text(:name) }
          @names_of_pools = names.any? ? names : @names.first(1)
        end
      end
    end
  end
end
