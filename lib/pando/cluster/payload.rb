# frozen_string_literal: true

require "pando/cluster/brief"

module Pando
  module Cluster
    # What a cluster carries: the layer above subclasses this. One instance
    # lives in the mold and is inherited by all that is forked from it.
    class Payload
      include Brief

      # @return [String] of the kind of its workers: where there are several, events, status and commands name it;
      #   letters, digits and underscores
      def name = "workers"

      # What other workers there are to be beside these, each kind in a pool of its own.
      # @return [Array<Pools::Plan>]
      def companions = []

      # What `server.ready` tells of it, beside what the monitor knows.
      # @param _listen [Array<String>] the addresses
      # @return [Hash{Symbol => Object}]
      def introduction(_listen) = {}

      # @return [Options]
      def options = raise(NoMethodError, "#{self.class} must say its options")

      # Loads the application. Runs once, in the mold of a cold boot.
      def load; end

      # In a process that is to be the mold of another pool, forked from a mold of the first pool that has booted from
      # cold: what of its application this one lacks is loaded.
      # @param name [String] of that pool
      # @return [Payload] its own
      def become(name) = raise(NoMethodError, "#{self.class} has nothing in common with #{name}")

      # Sets up, in the mold of a cold boot, what each of its children would otherwise set up in memory of its own.
      # @param _role [Mold]
      # @yieldparam step [String] what it does next, and may never come back from
      def warm_up(_role); end

      # In the monitor, when a mold is gone and another may have to boot: the folder that we work in may have been
      # removed and made anew.
      def find_folder; end

      # What it would be if the server were started now; for a reload.
      # @param _poller [Sys::Poller] of the monitor
      # @return [#ready?, #due, #within, #command, #listen, #control, #kept, #give_up] and what #adopt takes
      # @raise [Pando::Error, SystemCallError] it could not
      def renew(_poller) = raise(Pando::Error, "there is nothing to reload")

      # Takes a renewal into use: #options and hooks are its own from now on.
      # @param _renewal [Object] as #renew returned it
      def adopt(_renewal); end

      # In the monitor, for an upgrade: starts what the server would be if it were started now, in its folder.
      # @yieldparam command [Array<String>] @yieldparam variables [Hash{String => String}] the environment
      # @raise [Pando::Error, SystemCallError]
      def successor = raise(Pando::Error, "there is nothing to upgrade to")

      # What a reactor and its workers share, made in the monitor:
      # descriptors / lanes / lane / start / report / in_flight / state (see HTTP::ReactorSetup).
      # @param _descriptors [Array<Integer>, nil] of the former image, after an upgrade; nil: there was none
      # @return [Object, nil] nil: workers accept by themselves (direct mode)
      def reactor(_descriptors = nil) = nil

      # @param _listeners [Array<Listener>]
      # @param _channel [IO, nil] to the reactor, nil in direct mode
      # @return [#start, #sources, #ready, #idle, #step_forward, #step_back, #resume, #stop, #serve_out, #rest?,
      #   #patience, #go_on, #quiet, #try_out] what a worker does (HTTP::DirectHandler, HTTP::ReactorHandler,
      #   Swarm::JobHandler)
      def work(_listeners, _channel) = raise(NoMethodError, "#{self.class} must say what its workers do")

      # @return [String] what a worker is called in the list of processes
      def worker_name = "worker"

      # @raise [HookError]
      def run_hook(name, *arguments); end

      def hook?(_name) = false

      # Around the fork itself: the block returns in the forker, and in the new process before {#after_fork}.
      def around_fork = yield

      # In the monitor: what writes to descriptor 3 where the threads of a process stand, whose pid
      # follows as the last argument.
      # @return [Array<String>, nil] a command; nil: nothing can
      def examination_command = nil

      # In a worker that leaves: what is queued inside the process is done, before and after the block.
      # @param _role [Worker] @param _by [Float] what is not done by then is dropped; monotonic seconds
      # @yield runs the worker's last hook
      def finish_queues(_role, _by) = yield

      # Runs in every forked process before anything else of the payload, the hooks too.
      # @param _role [Mold, Worker, Service]
      # @yieldparam step [String] what it does next, and may never come back from
      def after_fork(_role, &); end

      # In a mold: looks at what one of its workers has made its own.
      # @param _role [Mold] @param _pagemap [Integer] a descriptor of /proc/PID/pagemap
      # @return [nil]
      def observe(_role, _pagemap) = nil

      # In a worker that was asked which pages of its memory are its own, and why.
      # @param _worker [Worker] @param _wish [String] @param descriptors [Array<Integer>] ours from here on
      # @return [#tick, #job_finished, #finish, nil] told of each turn, each job and the end; what it returns takes its
      #   place, nil: it is done
      def record_pages(_worker, _wish, descriptors)
        descriptors.each { |fd| Sys.close_fd(fd) }
        nil
      end

      # Looks whether a forked process that is otherwise ready is fit to be used.
      # @param _role [Mold, Worker, Service]
      # @yieldparam step [String] what it does next, and may never come back from
      # @raise [Exception] it is not
      def verify(_role, &); end

      # In a worker or mold that is about to fork, before the hooks of the user: what they may put an end to, and the
      # new one is to have again.
      # @param _of [:mold, :worker, :service] the new one's role
      def hand_down(_of); end

      # In a new worker, when the hooks of the user are through: what its first job would otherwise wait for.
      def take_up; end

      # In a worker that leaves, after its last job: the clients of long conversations are told to go elsewhere.
      # @param _by [Float, nil] monotonic seconds until which it may wait for them; nil: as long as it likes
      def say_goodbye(_by) = nil

      # In a worker that leaves, after all else: what is queued in the process is done.
      # @param _role [Worker] @param _by [Float, nil] as above
      def before_exit(_role, _by) = nil

      # In a process that forks, after the hooks of the user and just before the fork.
      # @param _role [Mold, Worker] of this process
      # @param _of [:mold, :worker, :service] the new one's
      # @raise [StandardError] it must not be forked
      def before_fork(_role, _of); end

      # In a new process: the last look at it before it is ready.
      # @param _role [Mold, Worker, Service]
      # @raise [StandardError] it must not become ready
      def audit(_role); end

      # In a mold, when the hooks of the user are through: what is done once here need not be done in each of those
      # that will be forked.
      def prepare; end

      # In a mold, at least once a second, unless it has more to do.
      # @param _role [Mold]
      def tick(_role); end

      # In a worker, at each turn of its loop.
      # @param _worker [Worker]
      def watch(_worker); end

      # In a worker: the monitor says that processes forked from one with this thread do not have it.
      # @param _worker [Worker] @param _key [String] as it was reported
      def lost_thread(_worker, _key); end

      # In a worker: another one has made this change to its process, too.
      # @param _token [String] as it was reported, see Generations::ChangedState
      def state_seen(_token); end

      # Tells the monitor what has been found out about a thread, see Generations::LostThreads.
      # @param role [Role] of this process @param kind [Symbol] see Message @param text [String]
      def report_thread(role, kind, text) = role.report(kind, text: text)

      # In a worker, now and then between two jobs.
      # @return [Integer] bytes of machine code that Ruby has made of what it carries
      def code_bytes = 0

      # In a worker that the next mold is to be forked from: it is given work before the others from now on.
      # @param _role [Worker]
      def train(_role); end

      # Tells the payload which role this process now has.
      # @param _role [Mold, Worker, Service]
      def attach(_role); end

      # Runs the user's loop; returns when it ends.
      def run_service(_index, _service); end
    end
  end
end
