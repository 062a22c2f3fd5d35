# frozen_string_literal: true

require "pando/cluster"

module ClusterSupport
  # Stands in for Server::Payload where there is no application. Programs of test/fixtures load it, too.
  class Payload
    include Pando::Cluster::Brief

    def name = "workers"
    def worker_name = "worker"
    def companions = []
    def introduction(_listen) = {}
    def threads = 1
    def reactor(_descriptors = nil) = nil
    def examination_command = nil
    def find_folder; end
    def serves?(_name) = false

    def load; end
    def self_check(&); end
    def warm_up(_role); end
    def prepare; end
    def ready_to_fork(_mold); end
    def tick(_role); end
    def observe(_role, _pagemap, _memory = nil) = nil

    def run_hook(_name, *_arguments); end
    def hook?(_name) = false
    def hand_down(_of); end
    def before_fork(_role, _of); end
    def around_fork = yield
    def after_fork(_role, &); end
    def attach(_role); end
    def take_up; end
    def keep_open(_ios); end
    def verify(_role, &); end
    def audit(_role); end

    def watch(_worker); end
    def lost_thread(_worker, _key); end
    def state_seen(_token); end
    def code_bytes = 0

    def say_goodbye(_by) = nil
    def finish_queues(_role, _by) = yield
    def hang_up(_stopping, _by) = nil
    def before_exit(_role, _by) = nil
  end
end
