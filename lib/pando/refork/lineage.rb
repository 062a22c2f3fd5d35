# frozen_string_literal: true

require "pando/cluster/serializable"

module Pando
  module Refork
    # What molds hand down: the memory that each of them had when it was born, and how many requests its line of
    # ancestors had served by then, since the boot from cold at its beginning. Tells a leak from warming up: a leak
    # takes the same for each request, however many there have been. docs/reforking.md has the rule.
    #
    # A function of what it is shown: it reads no clock and no process. Owned by Cluster::Generations::ColdBoots, in the
    # monitor.
    class Lineage
      extend Cluster::Serializable

      # A mold at its birth: the number of its generation, requests of its line, bytes, and what all workers have had
      # since the line began: seconds of CPU, and requests.
      Birth = Struct.new(:number, :requests, :bytes, :cpu, :served)

      # Bytes that each request leaves behind, and by what that is known: there were `before` bytes `after` so many
      # requests, and there are `bytes` after `requests`.
      Leak = Struct.new(:rate, :before, :after, :bytes, :requests) do
        # @return [Integer] bytes that a boot from cold gives back
        def grown = bytes - before
      end

      # Requests of a line that warm the app: what comes before them is not looked at.
      WARM = 200
      # It is looked at from an eighth of the requests on, and they must have come to four times as many since.
      WINDOW = 8
      SPREAD = 4
      # Molds in that time, and the share of it that may pass between two of them: a jump is then not taken for growth.
      LEAST = 4
      GAP = 0.6
      # Growth that counts: so many times what there was, and bytes.
      FACTOR = 1.5
      MUCH = 16 * 1_048_576
      # Parts of the time, and what each of them must have of an even growth.
      PARTS = 4
      EVEN = (0.4..2.0)
      # The second half must have grown by this share of what the first one has.
      STEADY = 0.8
      # So many times the requests at which it was seen first, it must be seen still.
      AGAIN = 1.2
      # Percent of memory that one percent of CPU time must buy.
      RHO = 3
      # Seconds of CPU that a boot takes which nobody has seen.
      GUESS = 10.0
      # Births that are remembered.
      MOST = 48

      serialize boot: :number, seen_at: :integer

      # @param boot [Float, nil] seconds of CPU that the boot took; nil: nobody has seen it
      def initialize(boot = nil)
        @boot = boot || GUESS
        @births = []
        @seen_at = 0
      end

      # @return [Integer, nil] of the generation that was born last
      def number = @births.map(&:number).max

      # @return [Integer] that the line has served until its last birth
      def requests = @births.last&.requests.to_i

      # @return [Integer] bytes of the mold that was born last
      def size = @births.last&.bytes.to_i

      # A mold is born.
      # @param number [Integer] of its generation
      # @param ancestor [Integer, nil] of that of the worker that it was forked from; nil: it has booted from cold
      # @param requests [Integer] that this worker had served
      # @param bytes [Integer] @param cpu [Float] @param served [Integer] see Birth
      # @return [self]
      def add(number, ancestor, requests, bytes, cpu: 0.0, served: 0)
        before = @births.select { |one| ancestor && one.number <= ancestor }.max_by(&:number)
        birth = Birth.new(number, before&.requests.to_i + requests, bytes, cpu, served)
        @births.reject! { |one| one.requests > birth.requests }
        @births << birth unless birth.requests == @births.last&.requests
        thin_out
        look
        self
      end

      # Generations after this one have come to nothing.
      # @param number [Integer]
      def forget_after(number)
        @births.reject! { |one| one.number > number }
        look
      end

      # @return [Leak, nil] nil: none is known
      attr_reader :leak

      # What a boot from cold costs: seconds of CPU of the boot, and of warming up once more.
      # @return [Float]
      def price
        start = start_of_window or return @boot
        last = @births.last
        steady = (last.cpu - at(start, :cpu)) / [last.served - at(start, :served), 1].max
        @boot + [at(start, :cpu) - (at(start, :served) * steady), 0.0].max
      end

      # @param pss [Integer] bytes that all processes take @param cpu [Float] seconds that workers have had in this line
      # @return [Boolean] whether what a boot from cold gives back is worth its price
      def pays?(pss, cpu) = !leak.nil? && pss.positive? && leak.grown * cpu >= RHO * price * pss

      # (see Cluster::Serializable)
      def serialized_fields = super.merge(Birth.members.to_h { |name| [name, @births.map(&name)] })

      # (see Cluster::Serializable)
      def take_up(record, prefix = "")
        super
        lists = Birth.members.map { |name| record.read("#{prefix}#{name}", name == :cpu ? :numbers : :integers).to_a }
        @births = lists.map(&:size).uniq.one? ? lists.transpose.map { |values| Birth.new(*values) } : []
        @leak = suspect if @births.any?
        @leak = nil unless confirmed?
        self
      end

      private

      # What was seen once may have been chance.
      def look
        suspected = suspect
        @seen_at = 0 unless suspected
        @seen_at = requests if suspected && @seen_at.zero?
        @leak = (suspected if confirmed?)
      end

      def confirmed? = @seen_at.positive? && requests >= @seen_at * AGAIN

      def suspect
        start = start_of_window or return
        span = requests - start
        sizes = (0..PARTS).map { |part| at(start + (span * part / PARTS.to_f), :bytes) }
        return unless leaking?(sizes)

        Leak.new(((sizes.last - sizes.first) / span).round, sizes.first.round, start.round, size, requests)
      end

      def leaking?(sizes) = real?(sizes) && even?(sizes) && steady?(sizes)

      # @return [Float, nil] requests; nil: too little is known
      def start_of_window
        first = @births.find { |one| one.requests.positive? } or return
        start = [WARM, first.requests, requests / WINDOW.to_f].max.to_f
        start if requests >= start * SPREAD && dense?(start)
      end

      # @return [Boolean] whether molds were born all the time
      def dense?(start)
        known = [start, *@births.map(&:requests).select { |one| one > start }]
        widest = known.each_cons(2).map { |one, other| other - one }.max
        known.size >= LEAST && widest <= (requests - start) * GAP
      end

      def real?(sizes)
        sizes.last >= sizes.first * FACTOR && sizes.last - sizes.first >= MUCH
      end

      def even?(sizes)
        share = (sizes.last - sizes.first) / PARTS
        sizes.each_cons(2).all? { |before, after| EVEN.cover?((after - before) / share) }
      end

      def steady?(sizes)
        middle = sizes[PARTS / 2]
        sizes.last - middle >= (middle - sizes.first) * STEADY
      end

      # @return [Float] between two births: as if it had grown evenly
      def at(requests, what)
        index = (@births.index { |one| one.requests >= requests } || (@births.size - 1)).clamp(1..)
        earlier, later = @births[index - 1, 2].map(&:requests)
        share = ((requests - earlier) / (later - earlier).to_f).clamp(0.0, 1.0)
        figure(index - 1, what).then { |before| before + ((figure(index, what) - before) * share) }
      end

      # Of three sizes in a row the middle one: a single one may be out of line.
      def figure(place, what)
        return @births[place][what] unless what == :bytes && place.between?(1, @births.size - 2)

        @births[place - 1, 3].map(&:bytes).sort[1]
      end

      # The one goes that is closest to those beside it.
      def thin_out
        return if @births.size <= MOST

        middle = (1...(@births.size - 1)).min_by { |index| @births[index + 1].requests - @births[index - 1].requests }
        @births.delete_at(middle)
      end
    end
  end
end
