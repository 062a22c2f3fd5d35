# frozen_string_literal: true

module Pando
  module Cluster
    module Reactor
      # The lanes of the workers, and the messages about them for the reactor. Messages that the reactor cannot take
      # now, since its link is full or there is no reactor, wait here. Owned by the first Pool, in the monitor.
      class Lanes
        include Brief

        # Signals of crashes, which the request may have caused.
        CRASHES = %w[SEGV BUS ABRT ILL FPE TRAP SYS].map { |name| Signal.list.fetch(name) }.freeze

        def initialize(setup, oom)
          @setup = setup
          @oom = oom
          # The longest unused number comes first: the reactor knows of a death long before the number is used again.
          @free = (0...setup.lanes).to_a
          @open = {}
          @untold = []
        end

        # @return [Array<IO>] the descriptors that every mold inherits
        def descriptors = @setup.descriptors

        def room?(number) = @free.size >= number

        # @raise [Pando::Error] all are taken
        def open_for(child)
          first = @free.first
          return [add(child, first, 0)] if child.threads == 1

          Array.new(child.threads) { |index| add(child, first, index + 1) }
        end

        # @return [Child, nil] the lane's worker
        def owner(number) = @open[number]&.child

        # Closes the lanes of workers that are gone. The reactor answers the requests that they have left undone.
        def close_deserted
          deserted = @open.each_value.select { |lane| lane.child.gone? }
          deserted.each { |lane| close(lane) }
        end

        # Queues a message for each open lane, for a new reactor.
        def tell_all
          @untold.clear
          @open.each_value { |lane| tell_open(lane) }
        end

        # There is no reactor; the next one will be told of all lanes.
        def forget_messages
          @untold.clear
          false
        end

        def tell(reactor)
          @untold.shift while @untold.any? && reactor.order(*@untold.first)
          @untold.empty?
        end

        def told? = @untold.empty?

        def to_state(state)
          state.add("channel", descriptors: descriptors.map { |one| state.keep(one) }, free: @free,
                               routes: (@setup.routes unless @setup.routes.empty?))
          @open.each_value { |lane| lane.to_state(state) }
        end

        # @raise [Upgrade::Unreadable] also if the reactor, which lives on, does not know the pools
        def from_state(state)
          unless state.one("channel").read(:routes, :text).to_s == @setup.routes
            raise Upgrade::Unreadable, "the pools or their paths have changed: that takes a restart"
          end

          state.all("lane").each do |record|
            child = state.roster[record.integer(:seat)] or raise Upgrade::Unreadable, "a lane has no worker"

            @open[record.integer(:number, among: 0...@setup.lanes)] = Lane.taken_up(record, state, child)
          end
          @free = state.one("channel").integers(:free).uniq - @open.keys
        end

        private

        def add(child, first, job)
          number = @free.first or raise Pando::Error, "all #{@setup.lanes} lanes to the reactor are taken"
          lane = Lane.new(number, first, job, child, *@setup.lane)
          @free.shift
          @open[number] = lane
          tell_open(lane)
          lane
        end

        def tell_open(lane)
          worker = [lane.child.pool, lane.child.slot, lane.child.generation]
          opening = Message.new(:lane_open, lane: lane.number, detail: lane.first, worker: worker)
          @untold << [opening, lane.for_reactor]
        end

        # If the reactor was not told of its opening, that message is dropped.
        def close(lane)
          @open.delete(lane.number)
          @untold.reject! { |message, _| message.lane == lane.number }
          @untold << [ending_of(lane), []]
          @free << lane.number
          lane.close
        end

        def ending_of(lane)
          return Message.new(:lane_close, lane: lane.number) if lane.child.ending.nil?

          Message.new(:lane_dead, lane: lane.number, cause: cause(lane.child, lane.job))
        end

        # Of the requests that a worker had at once only the one that is blamed is to pay for its death.
        def cause(child, job)
          return :beside unless child.blames?(job)
          return child.left_late? ? :left_late : :timeout if child.overdue?
          return :suspect if child.suspect?
          return :died unless child.ending.killed?

          CRASHES.include?(child.ending.number) || @oom.victim?(child) ? :suspect : :died
        end
      end

      # A lane to the reactor, of a worker or of one of its threads: its number, the memory that the reactor shares with
      # this worker only, the eventfd with which the reactor wakes it, and the reactor's end of the socket for
      # descriptors. All are new for each worker, since another may have damaged them. The next reactor gets them too.
      class Lane
        # The number of its worker's first lane, and which of its worker's jobs come by it.
        attr_reader :number, :first, :job, :child

        def self.taken_up(record, state, child)
          eventfd, socket, memory = %i[eventfd socket memory].map { |key| state.take(record.integer(key)) }
          new(*%i[number first job].map { |key| record.integer(key) }, child, IO.for_fd(eventfd, "r+b"),
              [UNIXSocket.for_fd(socket), nil], IO.for_fd(memory, "r+b"))
        end

        # The worker has its own ends.
        def to_state(state)
          state.add("lane", number: number, first: first, job: job, seat: child.seat,
                            eventfd: state.keep(@eventfd), socket: state.keep(@socket), memory: state.keep(@memory))
        end

        # @param eventfd [IO] @param sockets [Array(UNIXSocket, UNIXSocket)] the reactor's end and the worker's
        def initialize(number, first, job, child, eventfd, sockets, memory) # rubocop:disable Metrics/ParameterLists
          @number = number
          @first = first
          @job = job
          @child = child
          @eventfd = eventfd
          @socket, @worker_socket = sockets
          @memory = memory
        end

        # @return [Array<IO>] the descriptors that go with the order to fork the worker
        def for_worker = [@eventfd, @worker_socket, @memory]
        # @return [Array<IO>] the descriptors for a reactor
        def for_reactor = [@eventfd, @socket, @memory]

        # Closes the worker's end here, once it has been sent or could not be.
        def hand_over = @worker_socket.close

        def close = [@eventfd, @socket, @worker_socket, @memory].compact.each(&:close)
      end
    end
  end
end
