# frozen_string_literal: true

require "pando/config/types/bytes"
require "pando/config/types/choice"
require "pando/config/types/listen_on"
require "pando/config/types/networks"
require "pando/config/types/or_off"
require "pando/config/types/refork"
require "pando/config/types/seconds"
require "pando/config/types/share_of_memory"
require "pando/config/types/text"
require "pando/config/types/truth"
require "pando/config/types/whole"
require "pando/config/types/workers"
