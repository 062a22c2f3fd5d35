# frozen_string_literal: true

require "rackup/handler"
require "pando/rack_handler"

# Found by `rackup -s pando` and `bin/rails server -u pando`.
Rackup::Handler.register(:pando, Pando::RackHandler)
