# frozen_string_literal: true

module Pando
  module Cluster
    # The application and what surrounds it, as the cluster sees it. The layer above subclasses this (Server::Payload).
    # One instance lives in the monitor, for options and hooks; another lives in the mold, and all its forks inherit it.
    class Payload
      include Brief

      # @return [String] the name of the pool, for events, status and commands if there are several; letters, digits and
      #   underscores
      def name = "workers"

      # The other kinds of workers, each in its own pool.
      def companions = []

      # Fields of `server.ready` beside those of the monitor.
      # @param _listen [Array<String>] the addresses
      def introduction(_listen) = {}

      def options = raise(NoMethodError, "#{self.class} must say its options")

      # Loads the application. Runs once, in the mold of a cold boot.
      def load; end

      # Runs in the first pool's mold.
      # @return [Boolean] whether the workers of the pool with this name serve clients, too
      def serves?(_name) = false

      # Runs in a process that is to be another pool's mold, forked from the first pool's cold-booted mold. Loads the
      # part of the application that is missing.
      # @return [Payload] of the pool with this name
      def become(name) = raise(NoMethodError, "#{self.class} has nothing in common with #{name}")

      # Runs in the mold of a cold boot. Sets up what each of its children would otherwise set up in its private memory.
      def warm_up(_role); end

      # Runs in the monitor when a mold is gone and another may have to boot: the working directory may have been
      # removed and made again.
      def find_folder; end

      # The settings that a start of the server would have now, for a reload.
      # @return [#ready?, #due, #within, #command, #listen, #control, #kept, #give_up] and all that #adopt takes
      # @raise [Pando::Error, SystemCallError] the configuration cannot be read
      def renew(_poller) = raise(Pando::Error, "there is nothing to reload")

      # Applies what #renew has returned: #options and hooks are the new ones from now on.
      def adopt(_renewal); end

      # Runs in the monitor, for an upgrade: gives the command that would start the server now, in its working
      # directory.
      # @yieldparam command [Array<String>] @yieldparam variables [Hash{String => String}] the environment
      # @raise [Pando::Error, SystemCallError]
      def successor = raise(Pando::Error, "there is nothing to upgrade to")

      # The shared part of a reactor and its workers, made in the monitor: descriptors / lanes / lane / start / report /
      # in_flight / state (see HTTP::ReactorSetup).
      # @param _descriptors [Array<Integer>, nil] of the former image, after an upgrade; nil: there was none
      # @return [Object, nil] nil: workers accept by themselves (direct mode)
      def reactor(_descriptors = nil) = nil

      # @param _channel [IO, nil] to the reactor, nil in direct mode
      # @return [#start, #sources, #ready, #idle, #step_forward, #step_back, #resume, #stop, #serve_out, #rest?,
      #   #patience, #go_on, #abandon, #quiet, #try_out, #drained?] the work of a worker (HTTP::DirectHandler, HTTP::ReactorHandler,
      #   HTTP::ThreadedHandler, Swarm::JobHandler)
      def work(_listeners, _channel) = raise(NoMethodError, "#{self.class} must say what its workers do")

      # @return [Integer] jobs that a worker may have at once, each with a lane of its own
      def threads = 1

      # @return [String] a worker's name in the list of processes
      def worker_name = "worker"

      # @raise [HookError]
      def run_hook(name, *arguments); end

      def hook?(_name) = false

      # Runs around the fork. The block returns in the forker, and in the new process before {#after_fork}.
      def around_fork = yield

      # Runs in the monitor. The command writes the stacks of a process's threads to descriptor 3; the pid follows as
      # its last argument.
      # @return [Array<String>, nil] a command; nil: there is none
      def examination_command = nil

      # Runs in a worker that leaves. Finishes what is queued inside the process, before and after the block.
      # @param _by [Float] monotonic seconds; what is not done by then is dropped
      # @yield runs the worker's last hook
      def finish_queues(_role, _by) = yield

      # Runs in every forked process before any other code of the payload and before its hooks.
      def after_fork(_role, &); end

      # Runs in a mold. Examines which pages one of its workers has written to.
      # @param _pagemap [Integer] a descriptor of /proc/PID/pagemap
      def observe(_role, _pagemap) = nil

      # Runs in a worker that was asked which of its pages are private, and why.
      # @param descriptors [Array<Integer>] owned by the callee
      # @return [#tick, #job_finished, #finish, nil] called at each turn, after each job and at the end; its result
      #   replaces it, nil: it is done
      def record_pages(_worker, _wish, descriptors)
        descriptors.each { |fd| Sys.close_fd(fd) }
        nil
      end

      # Checks whether a forked process that is otherwise ready is fit for use, and raises if not.
      def verify(_role, &); end

      # Runs in a worker or mold that is about to fork, before the user's hooks. Remembers what the hooks may end and
      # the new process needs again.
      def hand_down(_of); end

      # Runs in a new worker, after the user's hooks. Does what its first job would otherwise wait for.
      def take_up; end

      # Runs in a worker that leaves, after its last job. Tells the clients of long-lived connections to go elsewhere.
      # @param _by [Float, nil] monotonic seconds until which it may wait for them; nil: no limit
      def say_goodbye(_by) = nil

      # Runs in a worker that leaves, after its last hook. Closes the long-lived connections that are still open.
      # @param _stopping [Boolean] whether the server stops; false: the worker is replaced
      # @param _by [Float, nil] as above
      def hang_up(_stopping, _by) = nil

      # Runs in a worker that leaves, after all else. Finishes what is queued in the process.
      # @param _by [Float, nil] as above
      def before_exit(_role, _by) = nil

      # Runs in a process that forks, after the user's hooks and just before the fork.
      # @raise [StandardError] the process must not be forked
      def before_fork(_role, _of); end

      # Runs in a new process: the last check before it is ready.
      # @raise [StandardError] it must not become ready
      def audit(_role); end

      # Runs in a mold, after the user's hooks. Does once what each process forked from it would otherwise do.
      def prepare; end

      # Runs in a mold, at least once a second while it is idle.
      def tick(_role); end

      # Runs in a worker, at each turn of its loop.
      def watch(_worker); end

      # Runs in a worker. The monitor says that forks of a worker with this thread do not have the thread.
      def lost_thread(_worker, _key); end

      # Runs in a worker: another worker has made this change to its process, too.
      def state_seen(_token); end

      # Reports what has been found out about a thread to the monitor, see Generations::LostThreads.
      def report_thread(role, kind, text) = role.report(kind, text: text)

      # Runs in a worker, now and then between two jobs.
      # @return [Integer] bytes of machine code that Ruby's JIT has compiled
      def code_bytes = 0

      # Runs in a worker that the next mold will be forked from: it takes work before the others from now on.
      def train(_role); end

      # Tells the payload which descriptors must stay open in this process, whatever the application closes.
      def keep_open(_ios); end

      # Tells the payload the present role of this process.
      def attach(_role); end

      # Runs the user's loop; returns when it ends.
      def run_service(_index, _service); end
    end
  end
end
