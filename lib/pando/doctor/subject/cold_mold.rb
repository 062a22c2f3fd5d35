# frozen_string_literal: true

# As server/cold_mold.rb, with the doctor's payload.

%w[INT TERM QUIT HUP].each { |name| trap(name, "IGNORE") }

require "pando/cluster"

Pando::Cluster::Boot.run do
  require "pando"
  require "pando/server"
  require "pando/doctor/subject/staging"
  Pando::Doctor::Subject::Staging.build(ARGV).last
end
