# frozen_string_literal: true

module Pando
  module Cluster
    # Where clients come in: the sockets that the monitor listens on, who else has them, and what a reload does to them.
    #
    # @api private
    module Listening
      autoload :Inherited, "pando/cluster/listening/inherited"
      autoload :Listener, "pando/cluster/listening/listener"
      autoload :Listeners, "pando/cluster/listening/listeners"
    end
  end
end
