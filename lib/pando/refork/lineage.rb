# frozen_string_literal: true

require "pando/serializable"

module Pando
  module Refork
    # The molds since the last cold boot: the memory of each at its birth, and the requests that its line of ancestors
    # had served by then. Tells a leak from warming up: a leak takes the same for each request, however many there have
    # been. docs/reforking.md explains the rule.
    #
    # It reads no clock and no process. Owned by Cluster::Generations::Ancestry, in the monitor.
    class Lineage
      extend Serializable

      # A mold at its birth: the number of its generation, requests of its line, bytes, and the CPU time and the
      # requests of all workers since the line began.
      Birth = Struct.new(:number, :requests, :bytes, :cpu, :served)

      # Bytes that each request leaves behind, and the measurements that show it: `before` bytes `after` so many
      # requests, and `bytes` after `requests`.
      Leak = Struct.new(:rate, :before, :after, :bytes, :requests) do
        # @return [Integer] bytes that a cold boot frees
        def grown = bytes - before
      end

      # Requests of a line that warm the app: growth before them is ignored.
      WARM = 200
      # The window begins at an eighth of the requests, and there must be four times as many at its end.
      WINDOW = 8
      SPREAD = 4
      # The fewest molds in the window, and the largest gap between two of them as a share of it: otherwise a jump would
      # pass for growth.
      LEAST = 4
      GAP = 0.6
      # The least growth that counts: a factor, and bytes.
      FACTOR = 1.5
      MUCH = 16 * 1_048_576
      # Parts of the window, and the growth of each part as a share of even growth.
      PARTS = 4
      EVEN = (0.4..2.0)
      # The least growth of the second half, as a share of the growth of the first one.
      STEADY = 0.8
      # A leak counts if it is still there after this many times the requests at which it was first seen: a single
      # observation may be chance.
      AGAIN = 1.2
      # Percent of memory that one percent of CPU time must save.
      RHO = 3
      # Seconds of CPU that a boot is assumed to take if it was not measured.
      GUESS = 10.0
      # Births that are remembered.
      MOST = 48

      serialize boot: :number, seen_at: :integer

      # @return [Leak, nil] nil: none is known
      attr_reader :leak

      def initialize(boot = nil)
        @boot = boot || GUESS
        @births = []
        @seen_at = 0
      end

      # @return [Integer, nil] of the generation that was born last
      def number = @births.map(&:number).max

      # Requests that the line has served until its last birth, and bytes of the mold that was born then.
      def requests = @births.last&.requests.to_i
      def size = @births.last&.bytes.to_i

      # A mold is born.
      # @param ancestor [Integer, nil] the generation of the worker that it was forked from; nil: it has booted from
      #   cold
      # @param requests [Integer] that this worker had served
      def add(number, ancestor, requests, bytes, cpu: 0.0, served: 0)
        before = @births.select { |one| ancestor && one.number <= ancestor }.max_by(&:number)
        birth = Birth.new(number, before&.requests.to_i + requests, bytes, cpu, served)
        @births.reject! { |one| one.requests > birth.requests }
        @births << birth unless birth.requests == @births.last&.requests
        thin_out
        look
      end

      # The generations after this one were discarded.
      def forget_after(number)
        @births.reject! { |one| one.number > number }
        look
      end

      # The cost of a cold boot: seconds of CPU of the boot, and of warming up once more.
      def price
        start = start_of_window or return @boot
        last = @births.last
        steady = (last.cpu - at(start, :cpu)) / [last.served - at(start, :served), 1].max
        @boot + [at(start, :cpu) - (at(start, :served) * steady), 0.0].max
      end

      # @param pss [Integer] bytes of all processes @param cpu [Float] seconds of CPU of all workers in this line
      # @return [Boolean] whether the memory that a cold boot frees is worth its price
      def pays?(pss, cpu) = !leak.nil? && pss.positive? && leak.grown * cpu >= RHO * price * pss

      def serialized_fields = super.merge(Birth.members.to_h { |name| [name, @births.map(&name)] })

      def take_up(record, prefix = "")
        super
        lists = Birth.members.map { |name| record.read("#{prefix}#{name}", name == :cpu ? :numbers : :integers).to_a }
        @births = lists.map(&:size).uniq.one? ? lists.transpose.map { |values| Birth.new(*values) } : []
        @leak = (suspect if confirmed?)
        self
      end

      private

      def look
        suspected = suspect
        @seen_at = 0 unless suspected
        @seen_at = requests if suspected && @seen_at.zero?
        @leak = (suspected if confirmed?)
        self
      end

      def confirmed? = @seen_at.positive? && requests >= @seen_at * AGAIN

      def suspect
        start = start_of_window or return
        span = requests - start
        sizes = (0..PARTS).map { |part| at(start + (span * part / PARTS.to_f), :bytes) }
        return unless leaking?(sizes)

        Leak.new(((sizes.last - sizes.first) / span).round, sizes.first.round, start.round, size, requests)
      end

      def leaking?(sizes)
        first, middle, last = sizes.values_at(0, PARTS / 2, -1)
        last >= first * FACTOR && last - first >= MUCH && last - middle >= (middle - first) * STEADY &&
          sizes.each_cons(2).all? { |before, after| EVEN.cover?((after - before) * PARTS / (last - first)) }
      end

      # @return [Float, nil] requests; nil: too little is known
      def start_of_window
        first = @births.find { |one| one.requests.positive? } or return
        start = [WARM, first.requests, requests / WINDOW.to_f].max.to_f
        start if requests >= start * SPREAD && dense?(start)
      end

      def dense?(start)
        known = [start, *@births.map(&:requests).select { |one| one > start }]
        widest = known.each_cons(2).map { |one, other| other - one }.max
        known.size >= LEAST && widest <= (requests - start) * GAP
      end

      # @return [Float] interpolated between two births
      def at(requests, what)
        index = (@births.index { |one| one.requests >= requests } || (@births.size - 1)).clamp(1..)
        earlier, later = @births[index - 1, 2].map(&:requests)
        share = ((requests - earlier) / (later - earlier).to_f).clamp(0.0, 1.0)
        figure(index - 1, what).then { |before| before + ((figure(index, what) - before) * share) }
      end

      # The median of three sizes in a row: a single one may be an outlier.
      def figure(place, what)
        return @births[place][what] unless what == :bytes && place.between?(1, @births.size - 2)

        @births[place - 1, 3].map(&:bytes).sort[1]
      end

      # Forgets the birth that is closest to its neighbours.
      def thin_out
        return if @births.size <= MOST

        middle = (1...(@births.size - 1)).min_by { |index| @births[index + 1].requests - @births[index - 1].requests }
        @births.delete_at(middle)
      end
    end
  end
end
